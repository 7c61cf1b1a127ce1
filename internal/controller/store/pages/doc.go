// Package pages reads the file of a database in bbolt's format (version 2), which etcd keeps its state in, and says where
// it is damaged. bbolt maps the file into memory and believes it: a file that was cut short ends the process with SIGBUS,
// one with foreign bytes with a panic or worse, and neither says which file it was. So this looks first, by reads.
package pages
