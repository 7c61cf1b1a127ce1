package state

import (
	"path/filepath"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
)

// A Dir is where one lab keeps its files.
type Dir struct{ Base, Lab string }

// Path is the directory itself.
func (d Dir) Path() string { return filepath.Join(d.Base, d.Lab) }

// BPF is where the lab's bpffs is mounted.
func (d Dir) BPF() string { return filepath.Join(d.Path(), "bpf") }

// Node is a node's own directory.
func (d Dir) Node(node string) string { return filepath.Join(d.Path(), node) }

// Program is a program's own directory, ${dir} in its files and arguments.
func (d Dir) Program(node, program string) string { return filepath.Join(d.Node(node), program) }

// Log is where the output of a daemon or program goes.
func (d Dir) Log(node, program string) string { return filepath.Join(d.Node(node), program+".log") }

// Socket is the Unix socket of a node's daemon, "" for nodes without one: a switch has no API of ours.
func (d Dir) Socket(n *plan.Node) string {
	if n == nil || n.Daemon() == "" || n.Kind == file.Switch {
		return ""
	}
	return filepath.Join(d.Node(n.Name), n.Daemon()+".sock")
}

// Journal is the file of a host's decisions, where the lab file asks for them.
func (d Dir) Journal(host string) string {
	return filepath.Join(d.Credentials(host), "journal.jsonl")
}

// Credentials is where a node's key and certificates are: for hosts their daemon's state directory.
func (d Dir) Credentials(node string) string { return d.Program(node, "state") }

func (d Dir) state() string { return filepath.Join(d.Path(), "state.json") }
func (d Dir) lock() string  { return filepath.Join(d.Base, "."+d.Lab+".lock") }
