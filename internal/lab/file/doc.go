// Package file reads lab files: what network is wanted, what is to happen to it, what is to be measured.
//
// It is about text and names alone. [Parse] gives a [File] in which every value is checked and every name refers to
// something; what has to be built for it is for package plan to say. The only files that it opens are the lab file and
// those that the lab file names, such as maps.
package file
