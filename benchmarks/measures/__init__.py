"""One module for each thing that is measured. Each returns the rows of the table that it can fill."""
