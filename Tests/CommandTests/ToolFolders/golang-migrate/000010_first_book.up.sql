INSERT INTO book (id, title, shelf) VALUES (1, 'One', 'a');
