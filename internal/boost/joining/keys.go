package joining

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/api/member"
	"scaffold.dev/scaffold/wire"
)

// lookEach is how often it is looked whether somebody has put another credential into the agent's directory: an agent has no
// socket by which `scaffold rotate` could say so.
const lookEach = time.Second

// tries notes which controller is asked.
func (j *joiner) tries(endpoint string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at = endpoint
}

// key is the one with which the agent joins: that of its certificate, where it has one.
func (j *joiner) key() (ed25519.PublicKey, error) {
	if j.Credentials == nil {
		return j.Keys.Key(), nil
	}
	switch m, err := j.Credentials.Member(); {
	case err != nil:
		return nil, err
	case m != nil:
		return m.Who().Key, nil
	}
	return j.Keys.Key(), nil
}

// reload begins the session anew where there is another credential than it was begun with. That there is one is told once, perhaps
// to who looked for a session of before, so the key is compared as well.
func (j *joiner) reload(s *session) {
	if j.Credentials == nil {
		return
	}
	other := j.Credentials.Reload()
	key, err := j.key()
	j.mu.Lock()
	other = other || err == nil && j.in == s && !j.with.Equal(key)
	j.mu.Unlock()
	if other {
		j.Log.Info("this agent has another credential; joining with it")
		s.End()
	}
}

// succeed has other agents find this one by the key with which it has joined. They hear of that from the controller, each at its
// time.
func (j *joiner) succeed() {
	j.mu.Lock()
	with := j.with
	j.mu.Unlock()
	if j.Credentials == nil || with.Equal(j.Keys.Key()) {
		return
	}
	key, err := j.Credentials.Directory.Key()
	if err == nil && !with.Equal(key.Public()) {
		return // it has got another one since, and joins with that next
	}
	if err == nil {
		err = j.Keys.Take(key)
	}
	if err != nil {
		j.Log.Error("other agents cannot be shown the key with which this one has joined: trunks that begin do not come to stand", "error", err)
		return
	}
	j.Log.Info("this agent has another key", "key", fmt.Sprintf("%08x", wire.KeyID(with)))
}

// rotate gets the agent another key, and has its session begin anew with it.
func (j *joiner) rotate(ctx context.Context) error {
	j.mu.Lock()
	endpoint, s := j.at, j.in
	j.mu.Unlock()
	if s == nil {
		return member.ErrNoSession
	}
	if _, err := j.Credentials.RotateAt(ctx, endpoint, nil, j.Controllers.Several()); err != nil {
		return err
	}
	s.End() // one that has begun meanwhile looks at the key (reload)
	return nil
}
