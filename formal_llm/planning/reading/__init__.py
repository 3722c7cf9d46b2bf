"""Reading back a plan that anybody wrote: a person, a language model, this library."""
