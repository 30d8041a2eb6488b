"""What the laboratory shows: tables, figures, pages and files, made the same way for every experiment."""
