"""`rankwise demo`: rankers trained for what they are judged by, on real images."""
