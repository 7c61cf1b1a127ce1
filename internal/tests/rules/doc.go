// Package rules holds the conventions of this tree as tests: which package may import which, that
// what is exported is explained, that what the documents name exists. It has no code of its own.
package rules
