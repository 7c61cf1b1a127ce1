package lead

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// facts are what this controller knows of the network while it leads, and of itself and the other controllers always.
func (c *Process) facts(ctx context.Context) health.Snapshot {
	s := health.Snapshot{Now: time.Now(), Version: obs.Version(), Lab: c.cfg.Lab, Open: c.cfg.OpenTo(), Clear: c.cfg.ClearTo(c.store.Peers()), Credentials: c.files()}
	own := health.Store{At: c.cfg.Name, Failing: c.store.Broken()}
	if t := c.term.Load(); t != nil {
		told := t.Describe(ctx)
		s.Settling, s.Restored, s.Unknown = told.Settling, told.Restored, told.Unknown
		s.Routers, s.Hosts, s.Services, s.Former = told.Routers, told.Hosts, told.Services, told.Former
		s.Credentials = append(s.Credentials, told.Credentials...)
		if len(told.Stores) > 0 {
			own = told.Stores[0]
		}
	}
	if free, needed, ok := c.store.Disk(); ok {
		own.Dir, own.Free, own.Needed, own.Total = c.store.String(), free, needed, c.store.Capacity()
	}
	own.Damaged = c.store.Damaged()
	if !c.store.Elected() {
		s.Stores = []health.Store{own}
		return s
	}
	var others map[string]*apiv1.Disk
	s.Cluster, others = c.cluster(ctx)
	s.Stores = parts(own, c.store.Applied(), others)
	return s
}

// parts are those of the state that the controllers have: own with its last change, and what the others say of theirs.
func parts(own health.Store, applied uint64, others map[string]*apiv1.Disk) []health.Store {
	latest := applied
	for _, d := range others {
		latest = max(latest, d.Applied)
	}
	if applied > 0 {
		own.Behind = latest - applied
	}
	list := []health.Store{own}
	for name, d := range others {
		x := health.Store{At: name, Dir: d.Dir, Free: d.Free, Needed: d.Needed, Total: d.Total, Failing: d.Failing, Damaged: d.Damaged}
		if d.Applied > 0 { // else it is of an older version
			x.Behind = latest - d.Applied
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b health.Store) int { return cmp.Compare(a.At, b.At) })
	return list
}

// files are the certificates that this controller shows to etcd and to the other controllers' parts of it.
func (c *Process) files() (list []health.Credential) {
	for role, file := range c.cfg.Certificates() {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the start said so
		}
		block, _ := pem.Decode(b)
		if block == nil {
			continue
		}
		if leaf, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, health.Credential{Role: role, Name: c.cfg.Name, File: file, Until: leaf.NotAfter, For: leaf.NotAfter.Sub(leaf.NotBefore)})
		}
	}
	return list
}
