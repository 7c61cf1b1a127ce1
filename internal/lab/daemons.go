package lab

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ControllerPort is where the controller listens on the management network.
const ControllerPort = 23728

// daemonArgv is how a node's daemon is started.
func (l *Lab) daemonArgv(n *PlanNode) []string {
	if l.opt.stub != nil {
		return l.opt.stub
	}
	argv := []string{l.opt.Binary, n.daemon(), "--name", n.Name, "--socket", l.Socket(n.Name)}
	switch n.Kind {
	case Controller:
		space := l.File.Network.Space
		if trust := l.File.Network.Trust; trust != "" {
			argv = append(argv, "--trust", trust)
		}
		argv = append(argv, l.openflowArgv(n)...)
		argv = append(argv, l.clusterArgv()...)
		return append(argv,
			"--listen", strings.Join(l.listens(n), ","), "--data", l.ProgramDir(n.Name, "data"),
			"--network", strings.ReplaceAll(l.File.Name, "_", "-"), "--domain", l.File.Network.Domain,
			"--services", space.Services.String(), "--as", space.AS.String(), "--identities", space.Identities.String())
	case Router:
		return append(argv, l.routerArgv(n)...)
	}
	argv = append(argv, "--bpffs", l.place.bpf(), "--state", l.ProgramDir(n.Name, "state"))
	for _, p := range n.data() {
		argv = append(argv, "--uplink", p.Dev)
	}
	if l.File.tunnels(n.Node) {
		argv = append(argv, "--uplink", cmp.Or(n.Uplink, "auto"), "--controller", l.seat(n))
	}
	if l.File.Network.Journal {
		argv = append(argv, "--journal", l.Journal(n.Name))
	}
	return argv
}

// Journal is the file of a host's decisions, where the lab file asks for them.
func (l *Lab) Journal(host string) string {
	return filepath.Join(l.ProgramDir(host, "state"), "journal.jsonl")
}

func (l *Lab) routerArgv(n *PlanNode) []string {
	argv := []string{"--controller", l.controllerURLs(), "--bpffs", l.place.bpf(), "--block", strconv.Itoa(n.Block), "--mgmt", managementDev}
	if l.File.Network.Trust == "keys" {
		argv = append(argv, "--credentials", l.credentialsDir(n))
	}
	if n.Service {
		argv = append(argv, "--service")
	}
	for _, p := range n.data() {
		argv = append(argv, "--port", p.Dev)
	}
	if n.Tunnels {
		for _, a := range n.offers() {
			argv = append(argv, "--tunnel", a.String())
		}
	}
	for _, p := range n.Peers {
		argv = append(argv, "--link", fmt.Sprintf("peer=%s,port=%s,via=%s", p.Name, p.Dev, p.Via))
	}
	return argv
}

// listens are the addresses of a controller: on the management network, and on the underlay.
func (l *Lab) listens(n *PlanNode) []string {
	list := []string{controllerURL(n)}
	for _, a := range n.offers() {
		list = append(list, "http://"+netip.AddrPortFrom(a, ControllerPort).String())
	}
	return list
}

func controllerURL(n *PlanNode) string {
	return "http://" + netip.AddrPortFrom(n.Management, ControllerPort).String()
}

// controllerURLs are those of all controllers, joined by commas.
func (l *Lab) controllerURLs() string {
	var urls []string
	for _, n := range l.File.of(Controller) {
		urls = append(urls, controllerURL(l.plan.Node(n.Name)))
	}
	return strings.Join(urls, ",")
}

// peerPort is where the controllers' parts of the state reach each other, where there are several.
const peerPort = 23729

// clusterArgv has several controllers keep the state together.
func (l *Lab) clusterArgv() []string {
	all := l.File.of(Controller)
	if len(all) == 1 {
		return nil
	}
	var members []string
	for _, n := range all {
		members = append(members, n.Name+"=http://"+netip.AddrPortFrom(l.plan.Node(n.Name).Management, peerPort).String())
	}
	return []string{"--cluster", strings.Join(members, ",")}
}

// startDaemons starts the controller first: the others ask for it at once.
func (l *Lab) startDaemons(ctx context.Context) error {
	for _, kind := range []Kind{Controller, Switch, Router, Host} {
		for _, n := range l.plan.Nodes {
			if n.Kind != kind || n.daemon() == "" {
				continue
			}
			if err := l.startDaemon(ctx, n); err != nil {
				return err
			}
		}
		if kind == Controller {
			if err := l.admit(ctx); err != nil {
				return err
			}
		}
	}
	return l.startFRR(ctx)
}

func (l *Lab) startDaemon(ctx context.Context, n *PlanNode) error {
	if n.Kind == Switch {
		return l.startSwitch(ctx, n)
	}
	argv := l.daemonArgv(n)
	return l.spawn(n, n.daemon(), exec.Command(argv[0], argv[1:]...))
}

// spawn starts a daemon or a program with its output in its log, apart from this process: it lives on
// when this process ends. How it ended is noted while this process lives.
func (l *Lab) spawn(n *PlanNode, name string, cmd *exec.Cmd) error {
	log, err := os.OpenFile(l.LogPath(n.Name, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	key := n.Name + "/" + name
	l.mu.Lock()
	delete(l.exits, key)
	l.mu.Unlock()
	_ = l.cgroup(n.Name).child(name).rmdir() // it may have been killed by others; busy: the start tells
	if err := l.start(n, name, cmd); err != nil {
		return fmt.Errorf("start %s: %w", key, err)
	}
	go func() { // ends with the process
		cmd.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.exits[key] = cmd.ProcessState.String()
	}()
	return nil
}

// exited says how a process ended that this process started, with the end of its log.
func (l *Lab) exited(node, name string) error {
	l.mu.Lock()
	how, ok := l.exits[node+"/"+name]
	l.mu.Unlock()
	if !ok {
		return nil
	}
	return fmt.Errorf("%s/%s ended (%s); the end of its log:\n%s", node, name, how, l.logTail(node, name))
}

// tailLines is how much of a log an error shows.
const tailLines = 8

func (l *Lab) logTail(node, name string) string {
	text, _ := os.ReadFile(l.LogPath(node, name))
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "    " + strings.Join(lines, "\n    ")
}

// daemonsAlive is an error as soon as a daemon has ended.
func (l *Lab) daemonsAlive() error {
	if err := l.exited(managementNode, engineName); err != nil {
		return &finalError{err}
	}
	for _, n := range l.plan.Nodes {
		if name := n.daemon(); name != "" {
			if err := l.exited(n.Name, name); err != nil {
				return &finalError{err}
			}
		}
	}
	return nil
}

// running reports whether a program or daemon of a node has processes.
// What a daemon left to go on without it, the WireGuard of its tunnels, does not count.
func (l *Lab) running(node, name string) bool {
	return slices.ContainsFunc(l.cgroup(node).child(name).pids(), func(pid int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !bytes.Contains(line, []byte("\x00wireguard\x00"))
	})
}

// end kills one program or daemon with all its children.
func (l *Lab) end(ctx context.Context, node, name string) error {
	return l.cgroup(node).child(name).kill(ctx)
}
