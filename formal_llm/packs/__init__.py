"""Code that task packs need beside their text: data, tools, scores. One package for each pack that needs some."""
