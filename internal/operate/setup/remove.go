package setup

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/linux/private"
)

// A Removal is what an uninstallation would do.
type Removal struct {
	Roles  []Role
	Remove []Entry  // by path; those with a former content get it back
	Keep   []string // what was edited since, and why it stays
	Purge  []string // state that goes as well
	user   bool
	list   *Manifest
	purge  bool
	config bool // configuration stays
}

// ErrNothing says that nothing is installed.
var ErrNothing = errors.New("nothing was installed here")

// Removal looks what is to be taken off for some roles, or for all with none. It changes nothing.
// With keepConfig configuration files stay for another installation, as a package manager's remove has it.
func (m *Machine) Removal(roles []Role, purge, keepConfig bool) (*Removal, error) {
	list, err := m.readManifest()
	if err != nil {
		return nil, err
	}
	if len(roles) == 0 {
		roles = slices.Clone(list.Roles)
		for _, e := range list.Entries { // also what half an installation left
			for _, r := range e.Roles {
				if !slices.Contains(roles, r) {
					roles = append(roles, r)
				}
			}
		}
	}
	rm := &Removal{Roles: roles, list: list.clone(), purge: purge, config: keepConfig}
	for _, e := range slices.Backward(list.Entries) {
		if !slices.ContainsFunc(e.Roles, func(r Role) bool { return !slices.Contains(roles, r) }) {
			rm.weigh(m, e)
		}
	}
	if purge {
		for _, r := range roles {
			rm.Purge = append(rm.Purge, r.Config(), r.state())
		}
		rm.user = !rm.stays(Roles...)
		if rm.user {
			rm.Purge = append(rm.Purge, "/etc/scaffold", "/var/lib/scaffold")
		}
		rm.Purge = slices.DeleteFunc(rm.Purge, func(path string) bool { return !m.exists(path) })
	}
	if len(rm.Remove) == 0 && len(rm.Keep) == 0 && len(rm.Purge) == 0 {
		return nil, ErrNothing
	}
	return rm, nil
}

// weigh decides about one entry: what somebody has edited since is not ours to remove.
func (rm *Removal) weigh(m *Machine, e Entry) {
	there, err := m.hold(e.Path)
	switch {
	case e.Config && rm.config:
		rm.list.Entries = slices.DeleteFunc(rm.list.Entries, func(l Entry) bool { return l.Path == e.Path })
		return
	case e.Kind == kindDir, err == nil && there == nil:
	case err != nil:
		rm.Keep = append(rm.Keep, fmt.Sprintf("%s: %v", e.Path, err))
		return
	case e.Kind == kindLink && there.Link == e.Sum, e.Kind == kindFile && there.Link == "" && sum(there.Text) == e.Sum:
	case e.Config && rm.purge:
	case e.Before != nil && there.is(e.Before): // half an installation: not written yet
	case e.Config:
		rm.Keep = append(rm.Keep, e.Path+": was edited; --purge removes it")
		return
	case e.Before != nil:
		rm.Keep = append(rm.Keep, e.Path+": was edited since; take the line `nameserver ::1` out by hand")
		return
	default:
		rm.Keep = append(rm.Keep, e.Path+": was edited; remove it by hand")
		return
	}
	rm.Remove = append(rm.Remove, e)
}

// order is that in which the daemons are stopped: a host leaves its network by way of router and controller, which may
// be this machine's.
func (rm *Removal) order() []Role {
	all := slices.Clone(rm.Roles)
	slices.SortFunc(all, func(a, b Role) int { return slices.Index(Roles, b) - slices.Index(Roles, a) })
	return all
}

// Lines are what a dry run shows.
func (rm *Removal) Lines(m *Machine) (lines []string) {
	if m.Live {
		for _, r := range rm.order() {
			lines = append(lines, "run     systemctl stop "+r.Unit())
		}
	}
	for _, e := range rm.Remove {
		verb := "remove "
		if e.Before != nil {
			verb = "restore"
		} else if e.Kind == kindDir {
			verb = "rmdir  "
		}
		lines = append(lines, verb+" "+e.Path)
		if len(e.After) > 0 && m.Run != nil {
			lines = append(lines, "run     "+strings.Join(e.After, " "))
		}
	}
	for _, path := range rm.Purge {
		lines = append(lines, "purge   "+path)
	}
	for _, text := range rm.Keep {
		lines = append(lines, "keep    "+text)
	}
	return lines
}

// Uninstall stops the daemons and removes what their installation made. What fails is told, and the
// rest is done all the same; the manifest then holds what is left, for another try.
func (m *Machine) Uninstall(rm *Removal) error {
	var errs []error
	if m.Live {
		for _, r := range rm.order() {
			if m.Run("systemctl", "cat", r.Unit()) == nil {
				m.revive(r)
				errs = append(errs, m.Run("systemctl", "stop", r.Unit()))
			}
		}
		if len(errs) > 0 && errors.Join(errs...) != nil {
			return errors.Join(errs...) // a daemon that runs needs its files
		}
		if slices.Contains(rm.Roles, Router) && rm.stays(Host) {
			errs = append(errs, m.lookAgain())
		}
		const mount = "run-scaffold-bpf.mount"
		if !rm.stays(Router, Host, Agent) && m.Run("systemctl", "is-active", "--quiet", mount) == nil {
			errs = append(errs, m.Run("systemctl", "stop", mount))
		}
	}
	for _, e := range rm.Remove {
		errs = append(errs, m.removeEntry(rm.list, e))
	}
	for _, path := range rm.Purge {
		errs = append(errs, os.RemoveAll(m.at(path)))
	}
	if m.Live {
		errs = append(errs, m.Run("systemctl", "daemon-reload"))
	}
	if !m.image() && !rm.stays(Roles...) {
		private.Sweep() //nolint:errcheck // what it leaves keeps the directory
		for _, dir := range []string{"/run/scaffold/" + bpffs.LockName, "/run/scaffold/bpf", "/run/scaffold/controld", "/run/scaffold"} {
			os.Remove(dir) // where nothing is in it
		}
	}
	if rm.user && m.Run != nil && m.Run("getent", "passwd", "scaffold") == nil {
		errs = append(errs, m.Run("userdel", "scaffold"))
		m.Run("groupdel", "scaffold") //nolint:errcheck // goes with the user where that has it alone
		errs = append(errs, m.Run("sh", "-c", "! getent group "+adminGroup+" >/dev/null || groupdel "+adminGroup))
	}
	return errors.Join(append(errs, m.forget(rm))...)
}

// revive starts a daemon that was killed and left its part of the kernel, and its tunnels, for the next one: its end
// takes them away.
func (m *Machine) revive(r Role) {
	if (r == Router || r == Host) && m.exists(r.Socket()) && !m.active(r) {
		m.Begin(r, false) //nolint:errcheck // where it does not start, what it left goes with the next boot
	}
}

// stays reports whether one of the roles is left on the machine.
func (rm *Removal) stays(roles ...Role) bool {
	return slices.ContainsFunc(rm.list.Roles, func(r Role) bool { return slices.Contains(roles, r) && !slices.Contains(rm.Roles, r) })
}

func (m *Machine) removeEntry(list *Manifest, e Entry) error {
	if e.Kind == kindDir {
		os.Remove(m.at(e.Path)) // where nobody else has put anything there
		return nil
	}
	if err := m.restore(e.Path, e.Before); err != nil {
		return fmt.Errorf("%s: %w", m.at(e.Path), err)
	}
	list.Entries = slices.DeleteFunc(list.Entries, func(l Entry) bool { return l.Path == e.Path })
	if len(e.After) > 0 && m.Run != nil {
		return m.Run(e.After...)
	}
	return nil
}

// forget shortens the manifest, and removes it with the last role.
func (m *Machine) forget(rm *Removal) error {
	gone := func(r Role) bool { return slices.Contains(rm.Roles, r) }
	rm.list.Roles = slices.DeleteFunc(rm.list.Roles, gone)
	rm.list.Entries = slices.DeleteFunc(rm.list.Entries, func(e Entry) bool {
		return e.Kind == kindDir && !m.exists(e.Path)
	})
	for i := range rm.list.Entries {
		e := &rm.list.Entries[i]
		if left := slices.DeleteFunc(slices.Clone(e.Roles), gone); len(left) > 0 {
			e.Roles = left
		}
	}
	if len(rm.list.Roles) > 0 {
		return m.writeManifest(rm.list)
	}
	left := slices.ContainsFunc(rm.list.Entries, func(e Entry) bool { return e.Kind != kindDir })
	if left && !rm.purge {
		return m.writeManifest(rm.list)
	}
	err := m.restore(manifestPath, nil)
	for _, e := range slices.Backward(rm.list.Entries) {
		if e.Kind == kindDir {
			os.Remove(m.at(e.Path))
		}
	}
	return err
}
