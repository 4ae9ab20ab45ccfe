"""What the commands do: from words as they were typed to cells, their progress, and what is said of the results."""
