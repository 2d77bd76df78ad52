"""What the explorers show: one module a topic, values to HTML, in numpy and nothing else."""
