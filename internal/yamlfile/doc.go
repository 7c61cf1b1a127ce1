// Package yamlfile takes a YAML file apart for people: every mistake is told with its file, line and
// column and with what was expected, and all of them at once.
package yamlfile
