package processes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"scaffold.dev/scaffold/internal/lab/plan"
)

// sbin is where daemons are, which the PATH of sudo and of ordinary users leaves out.
const sbin = ":/usr/local/sbin:/usr/sbin:/sbin"

// Environ is what programs in a node see.
func (p *Processes) Environ(n *plan.Node) (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PATH=") && !strings.HasPrefix(e, "SCAFFOLD_") {
			env = append(env, e)
		}
	}
	env = append(env, "PATH="+p.path(), "SCAFFOLD_LAB="+p.Plan.File.Name, "SCAFFOLD_NODE="+n.Name)
	if p.Besides != nil {
		env = append(env, p.Besides(n)...)
	}
	return env
}

// product is the command that is the lab's own binary, wherever that is.
const product = "scaffold"

// path is PATH in a node. The directory of the lab's binary is in it where that has the usual name.
func (p *Processes) path() string {
	path := os.Getenv("PATH") + sbin
	if filepath.Base(p.Binary) == product {
		path = filepath.Dir(p.Binary) + ":" + path
	}
	return path
}

// LookPath is exec.LookPath that also looks where daemons are.
func (p *Processes) LookPath(name string) (string, error) {
	switch {
	case strings.Contains(name, "/"):
		return name, nil
	case name == product:
		return p.Binary, nil
	}
	for _, dir := range filepath.SplitList(p.path()) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
