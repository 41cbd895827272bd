"""The ground floor: code that every other package may use. It imports no other package of jostle."""
