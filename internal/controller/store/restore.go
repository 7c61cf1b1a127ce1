package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Why a backup is not put in.
var (
	ErrNotEmpty = errors.New("there is a network already")
	ErrRunning  = errors.New("a controller runs on it")
)

// epochsAhead is by how much a restored network's epoch is raised: more terms than there can have been since the backup
// was made, so that daemons that saw those do not take the next leader for one of before.
const epochsAhead = 1 << 20

// Restore puts a backup into a store that holds nothing of the network, while no controller runs on it. One that is
// interrupted is begun anew by the next: until it has ended no controller starts on the store.
func Restore(ctx context.Context, cfg Config, b *Backup) error {
	if cfg.Network != b.Network {
		return fmt.Errorf("%w: the backup is of the network %s, and %s is to be restored: give it its own backup, or leave --network out", ErrOtherNetwork, b.Network, cfg.Network)
	}
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	err = s.restore(ctx, b)
	return errors.Join(err, s.Close())
}

func (s *Store) restore(ctx context.Context, b *Backup) error {
	if err := s.alone(ctx); err != nil {
		return err
	}
	if err := s.vacant(ctx); err != nil {
		return err
	}
	term, err := s.Campaign(ctx, Candidate{Name: "restore"})
	if err != nil {
		return err
	}
	defer term.Resign()
	changes := []Change{{"restoring", b.Made}}
	for _, r := range b.records {
		if value, keep := restored(r); keep {
			changes = append(changes, Change{r.Key, value})
		}
	}
	if err := s.inPieces(ctx, changes...); err != nil { // the first one says that the rest is not there yet
		return err
	}
	return s.Commit(ctx, Change{"epoch", b.Epoch + epochsAhead}, Change{"restored", Restored{Made: b.Made}}, Change{"restoring", nil})
}

// restored is what becomes of a record. Tokens may have been used since; redirects are over by now. A locator that
// somebody had left may be anybody's: it is given to nobody who does not have it already.
func restored(r backupRecord) (value any, keep bool) {
	switch kind, _, _ := strings.Cut(r.Key, "/"); kind {
	case "token", "redirect", "epoch":
		return nil, false
	case "quarantine":
		var q Quarantine
		if json.Unmarshal(r.Value, &q) != nil {
			return nil, false
		}
		q.Host = ""
		return q, true
	}
	return r.Value, true
}

// vacant refuses a store with a network in it, or with a controller. What an interrupted restore left is removed.
func (s *Store) vacant(ctx context.Context) error {
	interrupted := ctx.Err
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	have, err := s.etcd().Get(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	switch {
	case err != nil && interrupted() != nil:
		return fmt.Errorf("store: read %s: %w", s, err)
	case err != nil:
		return fmt.Errorf("store: %w at %s: is it running, and is --etcd right? (%w)", ErrAway, s, err)
	}
	records, broken := 0, false
	for _, kv := range have.Kvs {
		key := strings.TrimPrefix(string(kv.Key), s.prefix)
		switch {
		case strings.HasPrefix(key, "leader/"):
			return fmt.Errorf("store: %s: %w: stop all controllers of the network %s first", s, ErrRunning, s.cfg.Network)
		case key == probe: // a controller was there and came to nothing
			continue
		case key == "restoring":
			broken = true
		}
		records++
	}
	switch {
	case records == 0:
		return nil
	case !broken:
		return fmt.Errorf("store: %s: %w, %s, in %d records: restore into an empty directory or etcd, and keep this one until it works", s, ErrNotEmpty, s.cfg.Network, records)
	}
	if _, err := s.etcd().Delete(ctx, s.prefix, clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("store: remove what an interrupted restore left in %s: %w", s, err)
	}
	return nil
}
