package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// manifestPath is where an installation says what it made.
const manifestPath = "/var/lib/scaffold/install.json"

// manifestVersion is of the layout of the manifest.
const manifestVersion = 1

// A Manifest is what was made on this machine, for whoever takes it off again.
type Manifest struct {
	Version int     `json:"version"`
	Roles   []Role  `json:"roles"`
	Entries []Entry `json:"entries"`
}

// An Entry is a file, link or directory that was made or replaced.
type Entry struct {
	Path   string   `json:"path"`
	Kind   kind     `json:"kind"`
	Sum    string   `json:"sum,omitempty"` // of what was written; of a link its target
	Roles  []Role   `json:"roles"`         // who needs it
	Before *before  `json:"before,omitempty"`
	Config bool     `json:"config,omitempty"` // the operator's once it is written
	After  []string `json:"after,omitempty"`  // to be run when it has gone
}

// before is what was in an entry's place.
type before struct {
	Link string `json:"link,omitempty"`
	Text []byte `json:"text,omitempty"`
	Mode uint32 `json:"mode,omitempty"`
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

// readManifest returns an empty one where nothing was installed.
func (m *Machine) readManifest() (*Manifest, error) {
	raw, err := m.read(manifestPath)
	if errors.Is(err, fs.ErrNotExist) {
		return &Manifest{Version: manifestVersion}, nil
	}
	if err != nil {
		return nil, err
	}
	var list Manifest
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, &ManifestError{m.at(manifestPath), err.Error()}
	}
	if list.Version != manifestVersion {
		return nil, &ManifestError{m.at(manifestPath), fmt.Sprintf("version %d, this program knows %d", list.Version, manifestVersion)}
	}
	for _, e := range list.Entries {
		if !allowed(e.Path) {
			return nil, &ManifestError{m.at(manifestPath), fmt.Sprintf("%q is nothing that an installation makes", e.Path)}
		}
	}
	return &list, nil
}

// A ManifestError says that the list of what was installed cannot be used.
type ManifestError struct{ Path, Text string }

func (e *ManifestError) Error() string { return e.Path + ": " + e.Text }

func (m *Machine) writeManifest(list *Manifest) error {
	raw, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return m.write(manifestPath, append(raw, '\n'), 0o644)
}

func (l *Manifest) find(path string) *Entry {
	for i := range l.Entries {
		if l.Entries[i].Path == path {
			return &l.Entries[i]
		}
	}
	return nil
}

// note adds an entry or renews it. What was there before the first installation stays known.
func (l *Manifest) note(e Entry, r Role) {
	old := l.find(e.Path)
	if old == nil {
		e.Roles = []Role{r}
		l.Entries = append(l.Entries, e)
		return
	}
	e.Roles, e.Before = old.Roles, old.Before
	if !slices.Contains(e.Roles, r) {
		e.Roles = append(e.Roles, r)
	}
	*old = e
}

func (l *Manifest) clone() *Manifest {
	c := *l
	c.Roles = slices.Clone(l.Roles)
	c.Entries = slices.Clone(l.Entries)
	for i := range c.Entries {
		c.Entries[i].Roles = slices.Clone(c.Entries[i].Roles)
	}
	return &c
}

// allowed says whether a path is one that an installation makes: a manifest that says otherwise was
// written by somebody else, and root would remove what it names.
func allowed(path string) bool {
	if path == resolvConf || path == headFile || path == "/usr/local/bin/scaffold" {
		return true
	}
	if path != filepath.Clean(path) || !strings.Contains(path, "scaffold") {
		for _, dir := range plainDirs {
			if path == dir {
				return true
			}
		}
		return false
	}
	return strings.HasPrefix(path, "/etc/") || filepath.Dir(path) == hookDir || path == savedConf || path == "/var/lib/scaffold"
}

// plainDirs are directories that an installation makes where they are not there.
var plainDirs = []string{"/usr", "/usr/local", "/usr/local/bin", "/etc", "/etc/sysusers.d", "/etc/tmpfiles.d", "/etc/systemd", "/etc/systemd/system",
	"/etc/systemd/system/multi-user.target.wants", "/etc/systemd/resolved.conf.d", "/etc/NetworkManager", "/etc/NetworkManager/dnsmasq.d",
	"/etc/dnsmasq.d", "/etc/resolvconf", "/etc/resolvconf/resolv.conf.d", "/usr/share", "/usr/share/containers", "/usr/share/containers/oci", hookDir, "/var", "/var/lib"}
