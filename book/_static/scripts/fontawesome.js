// Stands in for the theme's 1.5 MB script of the same name: the web font has every icon used here.
