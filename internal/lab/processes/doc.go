// Package processes starts the programs of a lab inside its nodes, whatever they are for, and knows what became of them: in
// the node's network namespace, with its own files of /etc, in a cgroup of its own by which all its children are found, its
// output in a log. What it starts outlives the process that started it.
package processes
