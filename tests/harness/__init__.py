"""What the tests share: a real server, its clients, and looks at what it leaves on the disk."""
