"""Code that task packs need besides their text: data, tools, scores; one package for each pack that needs it."""
