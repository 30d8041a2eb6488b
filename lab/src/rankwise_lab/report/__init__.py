"""Tables, figures, pages and files: how the laboratory shows every experiment."""
