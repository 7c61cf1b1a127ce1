package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options are what an installation is asked for.
type Options struct {
	Role     Role
	Config   []byte // what the configuration file is to hold; nil where it is there already
	Merged   []byte // what it held when Config was made of it; nil: Config is all new
	Binary   string // the program that runs
	Resolver string // how names get to this host's daemon: see Resolvers
	Domain   string // whose names
	Start    bool   // begin now, not only at the next boot
}

// A Plan is what an installation would do.
type Plan struct {
	Steps []Step
	Notes []string // what the operator should know or do
	Role  Role

	list  *Manifest
	after []Step   // commands for when all files are there
	flags []string // of the host's daemon, that follow from the resolver
	start bool
}

// A RefusedError says that something is in the way that an installation does not touch.
type RefusedError struct{ Text, Hint string }

func (e *RefusedError) Error() string { return e.Text }

func refuse(hint, format string, args ...any) error {
	return &RefusedError{fmt.Sprintf(format, args...), hint}
}

// programDirs are where a program may stay that services run.
var programDirs = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin"}

// Plan looks at the machine and says what is to be done. It changes nothing.
func (m *Machine) Plan(o Options) (*Plan, error) {
	list, err := m.readManifest()
	if err != nil {
		return nil, err
	}
	p := &Plan{Role: o.Role, list: list, start: o.Start && m.Live}
	binary := o.Binary
	if !slices.Contains(programDirs, filepath.Dir(binary)) {
		if binary, err = p.program(o.Binary); err != nil {
			return nil, err
		}
	}
	p.files(m, binary)
	if err := p.configuration(m, o); err != nil {
		return nil, err
	}
	if o.Role == Host {
		if err := p.resolver(m, o, binary); err != nil {
			return nil, err
		}
	}
	p.commands(m, binary)
	if !m.image() {
		p.Steps = append(p.Steps, p.after...)
	}
	return p, p.settle(m)
}

// program is the step that puts the binary where services look for it.
func (p *Plan) program(from string) (string, error) {
	const to = "/usr/local/bin/scaffold"
	text, err := os.ReadFile(from)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	p.Steps = append(p.Steps, Step{kind: kindFile, path: to, text: text, mode: 0o755, why: "this program, where services find it"})
	return to, nil
}

// files are those that a package would have brought.
func (p *Plan) files(m *Machine, binary string) {
	for _, f := range common(p.Role) {
		if m.exists(f.packaged) {
			continue
		}
		if strings.HasPrefix(f.unpackaged, "/etc/systemd/") && !m.Live && !m.image() {
			continue // nobody would read them
		}
		p.Steps = append(p.Steps, file(f.unpackaged, text(f.name, binary), fileWhy(f.name)))
	}
}

func fileWhy(name string) string {
	switch name {
	case "sysusers.conf":
		return "the user scaffold"
	case "tmpfiles.conf":
		return "directories"
	case "run-scaffold-bpf.mount":
		return "where the data path is pinned"
	case "oci-hook.json":
		return "makes containers guests that ask for it"
	}
	return "how the daemon runs"
}

// configuration writes the file, or takes the one that is there. One that somebody has edited stays.
func (p *Plan) configuration(m *Machine, o Options) error {
	path := p.Role.Config()
	there, err := m.hold(path)
	switch {
	case err != nil:
		return err
	case o.Config == nil && there == nil:
		hint := fmt.Sprintf("give the daemon's flags, as in `scaffold install %s --help`, or write the file first", p.Role)
		if p.Role == Agent {
			return refuse("`scaffold join --token TOKEN --door ADDRESS --port INTERFACE --install` writes it; by hand: examples/boost/boostd.yaml", "%s is not there", m.at(path))
		}
		return refuse(hint, "%s is not there and no flags say what it should hold", m.at(path))
	case o.Config == nil:
		return nil
	}
	step := file(path, o.Config, "the daemon's flags")
	step.config = true
	if there != nil && string(there.Text) != string(o.Config) {
		if o.Merged == nil || there.Link != "" || string(there.Text) != string(o.Merged) {
			return refuse("edit it, or move it away, and install again; without flags it is used as it is",
				"%s is there and says something else", m.at(path))
		}
		e := p.list.find(path)
		step.edited = e == nil || e.Sum != sum(there.Text) // what somebody else wrote stays his when it is uninstalled
	}
	p.Steps = append(p.Steps, step)
	return nil
}

// commands have the machine take note.
func (p *Plan) commands(m *Machine, binary string) {
	switch {
	case m.image():
		p.enable(m)
		p.Notes = append(p.Notes, "the user and the directories are made when the image boots; nothing was started")
		return
	case m.Look("systemd-sysusers"):
		p.Steps = append(p.Steps, command("makes the user and the groups", "systemd-sysusers", "scaffold.conf"))
	case m.Look("useradd"):
		p.Steps = append(p.Steps, command("makes the group of those who rule the network", "sh", "-c", "getent group "+adminGroup+" >/dev/null || groupadd --system "+adminGroup))
		p.Steps = append(p.Steps, command("makes the user", "sh", "-c", "getent passwd scaffold >/dev/null || useradd --system --user-group --no-create-home --home-dir /var/lib/scaffold/controld --shell /usr/sbin/nologin scaffold"))
	default:
		p.Notes = append(p.Notes, "neither systemd-sysusers nor useradd is here: make the user and group scaffold, and the group "+adminGroup+", by hand")
	}
	p.tellRulers(m)
	if m.Look("systemd-tmpfiles") {
		p.Steps = append(p.Steps, command("makes the directories", "systemd-tmpfiles", "--create", "scaffold.conf"))
	}
	if !m.Live {
		p.Notes = append(p.Notes, "systemd does not run here: no unit was made, nothing starts by itself. Start it with: "+p.Role.Start(binary, p.flags))
		return
	}
	p.enable(m)
	p.Steps = append(p.Steps, command("reads the units", "systemctl", "daemon-reload"))
}

// enable has the unit start at each boot, as `systemctl enable` does.
func (p *Plan) enable(m *Machine) {
	dir := "/etc/systemd/system/"
	target := dir + p.Role.Unit()
	if packaged := unit(p.Role.Unit()).packaged; m.exists(packaged) {
		target = packaged
	}
	p.Steps = append(p.Steps, Step{kind: kindLink, path: dir + "multi-user.target.wants/" + p.Role.Unit(), target: target, why: "starts at each boot"})
}

// settle marks what is done already and refuses to overwrite what is not ours.
func (p *Plan) settle(m *Machine) error {
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.kind == kindRun {
			continue
		}
		if s.done = m.settled(*s); s.done || s.taken || s.config {
			continue
		}
		there, err := m.hold(s.path)
		if err != nil {
			return err
		}
		e := p.list.find(s.path)
		if there == nil || e != nil && (e.Sum == sum(there.Text) || e.Sum == there.Link) {
			continue
		}
		if e != nil {
			return refuse("move it away and install again; settings of your own belong into a drop-in (systemctl edit)",
				"%s was edited since it was installed", m.at(s.path))
		}
		return refuse("move it away and install again", "%s is there and no installation made it", m.at(s.path))
	}
	return nil
}

// Changes reports whether the plan has anything to write.
func (p *Plan) Changes() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.kind != kindRun && !s.done })
}

// Install takes all steps or none: what was done is undone when a later one fails.
func (m *Machine) Install(p *Plan) (err error) {
	old, list := p.list.clone(), p.list
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for _, u := range slices.Backward(undo) {
			err = errors.Join(err, u())
		}
	}()
	made := m.missing(manifestPath)
	undo = append(undo, func() error { return m.unnote(old, made) })
	for _, dir := range made {
		list.note(Entry{Path: dir, Kind: kindDir}, p.Role)
	}
	for _, s := range p.Steps {
		if s.kind == kindRun {
			if err := m.take(s); err != nil {
				return err
			}
			continue
		}
		held, err := m.hold(s.path)
		if err != nil {
			return err
		}
		if s.done && list.find(s.path) == nil {
			continue // there before any installation
		}
		made := m.missing(s.path)
		for _, dir := range made {
			list.note(Entry{Path: dir, Kind: kindDir}, p.Role)
		}
		if e := s.entry(held); !s.edited {
			list.note(e, p.Role)
		}
		if err := m.writeManifest(list); err != nil { // before the thing itself: a crash leaves nothing unknown
			return err
		}
		if s.done {
			continue
		}
		undo = append(undo, func() error { return m.undo(s, held, made) })
		if err := m.take(s); err != nil {
			return err
		}
	}
	if !slices.Contains(list.Roles, p.Role) {
		list.Roles = append(list.Roles, p.Role)
	}
	return m.writeManifest(list)
}

// undo takes one step back, and the directories that were made for it.
func (m *Machine) undo(s Step, held *before, made []string) error {
	err := m.restore(s.path, held)
	if len(s.after) > 0 && m.Run != nil {
		err = errors.Join(err, m.Run(s.after...))
	}
	for _, dir := range slices.Backward(made) {
		os.Remove(m.at(dir)) // where it is empty
	}
	return err
}

// unnote puts the former manifest back.
func (m *Machine) unnote(old *Manifest, made []string) error {
	if len(old.Entries) > 0 || len(old.Roles) > 0 {
		return m.writeManifest(old)
	}
	err := m.restore(manifestPath, nil)
	for _, dir := range slices.Backward(made) {
		os.Remove(m.at(dir))
	}
	return err
}

// missing are the directories above a path that are not there yet, the highest first.
func (m *Machine) missing(path string) (dirs []string) {
	for dir := filepath.Dir(path); dir != "/" && !m.exists(dir); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// begins is what Begin will run, for a dry run.
func (m *Machine) begins(r Role, changed bool) []string {
	switch runs := m.active(r); {
	case runs && !changed:
		return nil
	case runs && (r == Gateway || r == Agent): // a new process takes everything over; a restart would drain, or reset
		return []string{"systemctl", "kill", "--kill-who=main", "--signal=USR2", r.Unit()}
	case runs:
		return []string{"systemctl", "restart", r.Unit()}
	}
	return []string{"systemctl", "start", r.Unit()}
}

// Starts is the last step of a plan as a dry run shows it; "" where nothing is started.
func (m *Machine) Starts(p *Plan) string {
	if !p.start {
		return ""
	}
	args := m.begins(p.Role, p.Changes())
	if args == nil {
		return "keep    " + p.Role.Unit() + ": it runs, and nothing changes"
	}
	return fmt.Sprintf("run     %s: flows go on", strings.Join(args, " "))
}

// Begin starts the daemon, or restarts one that runs so that flows go on. The units are of Type=notify: systemctl comes
// back when the daemon has said that it is ready, or has failed.
func (m *Machine) Begin(r Role, changed bool) error {
	args := m.begins(r, changed)
	if args == nil {
		return nil
	}
	if err := m.Run(args...); err != nil {
		return err
	}
	if !m.active(r) { // a condition of the unit is no failure to systemctl
		return fmt.Errorf("%s does not run", r.Unit())
	}
	if r == Router && args[1] == "start" {
		return m.lookAgain()
	}
	return nil
}

// lookAgain has the host of this machine look for its uplinks anew, where it runs: a router came, whose host it is to be,
// or went. Flows go on.
func (m *Machine) lookAgain() error {
	if !m.active(Host) {
		return nil
	}
	return m.Run("systemctl", "restart", Host.Unit())
}

func (m *Machine) active(r Role) bool {
	return m.Run("systemctl", "is-active", "--quiet", r.Unit()) == nil
}

// askAgain is how long after an answer a daemon is asked again how it is.
const askAgain = 50 * time.Millisecond

// Well waits until the daemon says that it is well, and returns what it says else: a host that has found
// no router, for one, runs all the same.
func Well(r Role, wait time.Duration) string {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", r.Socket())
		},
	}}
	said := "it does not answer"
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(askAgain) {
		resp, err := client.Get("http://scaffold/healthz")
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came is enough
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return ""
		}
		said = worst(text)
	}
	return said
}

// worst is the first problem that /healthz tells of, with the command that comes next.
func worst(answer []byte) string {
	var h struct {
		Problems []struct{ What, Next string }
		Wrong    map[string]string // of a daemon that does not judge itself: by its parts
	}
	switch err := json.Unmarshal(answer, &h); {
	case err == nil && len(h.Problems) > 0:
		return h.Problems[0].What + " (next: " + h.Problems[0].Next + ")"
	case err == nil && len(h.Wrong) > 0:
		var said []string
		for _, part := range slices.Sorted(maps.Keys(h.Wrong)) {
			said = append(said, h.Wrong[part])
		}
		return strings.Join(said, "; ")
	}
	return "it says that it is not, and not why (scaffold doctor, and journalctl of its unit, may)"
}
