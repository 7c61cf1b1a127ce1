// Package names is the directory of a network's services: which name stands for which serviceID,
// under which policy. It is pure; randomness and time come from the caller.
package names
