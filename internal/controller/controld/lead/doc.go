// Package lead decides whether a controller leads its network, among those that share a store. A process leads, which is a
// term, or stands by and hands calls on to the one that does. Who leads is the store's to say: what is here asks it, begins a
// term with what is stored, and ends the term when the store says so, or when nobody knows what was saved. What a term is
// made of, the package does not know: it is given a function that begins one.
package lead
