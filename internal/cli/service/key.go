package service

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"

	corenames "scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/internal/linux/durable"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

func serviceKeygen() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key for a service: FILE, and FILE.pub with its public half",
		Long: `Keygen makes an Ed25519 key. A service that is created with it is called after it, and only hosts that have a
permit, signed with the key, may serve it. The network needs the public half alone; keep FILE where permits are made.`,
		Example: `  scaffold service keygen web.key
  scaffold service create web --key web.key.pub
  scaffold service delegate web --key web.key --host s1 --for 24h > s1.permit`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			public, private, err := newServiceKey()
			if err != nil {
				return err
			}
			if err := writeNew(args[0], permit.FormatPrivate(private), 0o600); err != nil {
				return err
			}
			if err := writeNew(args[0]+".pub", permit.FormatPublic(public), 0o644); err != nil {
				os.Remove(args[0])
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "key: %s\nserviceID suffix: %v\n", corenames.FormatKey(public), sid.Certified(public))
			return err
		},
	}
}

// newServiceKey makes a key whose suffix is none of the reserved ones, as one in 2^47 is.
func newServiceKey() (public ed25519.PublicKey, private ed25519.PrivateKey, err error) {
	for public == nil || !sid.Certified(public).Valid() {
		if public, private, err = ed25519.GenerateKey(nil); err != nil {
			return nil, nil, err
		}
	}
	return public, private, nil
}

// writeNew writes a file that is not there yet, whole or not at all.
func writeNew(file string, text []byte, mode fs.FileMode) error {
	err := durable.Create(file, text, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return exit.Failf(exit.Refused, "give it another name, or move that away first", "%s is there already", file)
	case err != nil:
		return exit.Fail(exit.Failed, "", err)
	}
	return nil
}

// permitFor are the flags of delegate.
type permitFor struct {
	remote.Admin
	key, host, hostKey, sid string
	last                    time.Duration
}

func serviceDelegate(a remote.Admin) *cobra.Command {
	p := &permitFor{Admin: a}
	cmd := &cobra.Command{
		Use:   "delegate NAME --key FILE --host HOST",
		Short: "Let a host serve a service with a key, for a while",
		Long: `Delegate writes a permit: the service's word that a host may serve it until a certain time. It is bound to the
host's key, so it is no secret. Put it into the directory that hostd --permits names, or give it to scaffold run.
Another one that lasts longer takes its place without a restart.

The service and the host's key are asked of the network, unless --sid and --host-key name them.`,
		Example: `  scaffold service delegate web --key web.key --host s1 --for 24h > s1.permit
  scaffold run --service web --permit s1.permit -- nginx -g 'daemon off;'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.write(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&p.key, "key", "", "file with the service's key")
	f.StringVar(&p.host, "host", "", "host that may serve")
	f.DurationVar(&p.last, "for", 24*time.Hour, "how long, from now on")
	f.StringVar(&p.hostKey, "host-key", "", "the host's public key in hexadecimal, where the network cannot be asked")
	f.StringVar(&p.sid, "sid", "", "the serviceID, where the network cannot be asked")
	cmd.MarkFlagRequired("key")
	cmd.MarkFlagRequired("host")
	return cmd
}

func (p *permitFor) write(cmd *cobra.Command, name string) error {
	text, err := command.ReadFile(cmd.Context(), p.key)
	if err != nil {
		return err
	}
	key, err := permit.ParsePrivate(text)
	if err != nil {
		return exit.Failf(exit.Usage, "`scaffold service keygen FILE` makes one", "%s: %v", p.key, err)
	}
	if p.last <= 0 || p.last > 10*365*24*time.Hour {
		return exit.Failf(exit.Usage, "as in --for 24h", "--for %v: want a time above 0 and below ten years", p.last)
	}
	id, err := p.service(cmd.Context(), name, key)
	if err != nil {
		return err
	}
	host, err := p.keyOfHost(cmd.Context())
	if err != nil {
		return err
	}
	now := time.Now()
	made := wire.Delegate(key, id, host, now.Add(-5*time.Minute).Unix(), now.Add(p.last).Unix())
	_, err = cmd.OutOrStdout().Write(permit.Format(made, name, p.host))
	return err
}

// service is the service's identifier, if the key is its.
func (p *permitFor) service(ctx context.Context, name string, key ed25519.PrivateKey) (sid.ServiceID, error) {
	public := key.Public().(ed25519.PublicKey)
	text := p.sid
	if text == "" {
		client, endpoint, err := p.DialAdmin()
		if err != nil {
			return sid.ServiceID{}, err
		}
		s, err := remote.Ask(ctx, client.GetService, &apiv1.GetServiceRequest{Name: name}, endpoint, remote.ListServices)
		if err != nil {
			return sid.ServiceID{}, err
		}
		text = s.Sid
		if has := s.GetAccess().GetKey(); has != corenames.FormatKey(public) {
			return sid.ServiceID{}, exit.Failf(exit.Refused, "`scaffold service show "+name+"` prints its key", "service %s has %s, the key in %s is %s", name, output.OrElse(has, "no key"), p.key, corenames.FormatKey(public))
		}
	}
	id, err := sid.ParseServiceID(text)
	if err != nil {
		return id, exit.Fail(exit.Usage, "", err)
	}
	if id.Suffix != sid.Certified(public) {
		return id, exit.Failf(exit.Usage, "", "serviceID %v is not that of the key in %s, whose suffix is %v", id, p.key, sid.Certified(public))
	}
	return id, nil
}

func (p *permitFor) keyOfHost(ctx context.Context) (ed25519.PublicKey, error) {
	if p.hostKey != "" {
		key, err := hex.DecodeString(p.hostKey)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, exit.Failf(exit.Usage, "", "--host-key %.80q: want %d hexadecimal digits", p.hostKey, 2*ed25519.PublicKeySize)
		}
		return key, nil
	}
	client, endpoint, err := p.DialAdmin()
	if err != nil {
		return nil, err
	}
	h, err := remote.Ask(ctx, client.GetHost, &apiv1.GetHostRequest{Name: p.host}, endpoint, "scaffold host ls")
	if err != nil {
		return nil, err
	}
	if len(h.Key) != ed25519.PublicKeySize {
		return nil, exit.Failf(exit.Refused, "--host-key names it", "the network knows no key of host %s", p.host)
	}
	return h.Key, nil
}

// accessFlags are the flags of who may serve and who may connect.
type accessFlags struct {
	key            string
	servers, allow []string
}

func (f *accessFlags) add(cmd *cobra.Command, withKey bool) {
	cmd.Flags().StringSliceVar(&f.servers, "server", nil, "host that may serve it, HOST:USER for the programs of one user there; repeat for more, any: every host")
	command.EmptyMeans(cmd.Flags(), "server", "any lets every host serve")
	cmd.Flags().StringSliceVar(&f.allow, "allow", nil, "who may connect: a host, service:NAME for the hosts that serve it, or a prefix of locators; repeat for more; any: everybody, none: nobody")
	command.EmptyMeans(cmd.Flags(), "allow", "any lets everybody connect, none nobody")
	if withKey {
		cmd.Flags().StringVar(&f.key, "key", "", "file with its public key: instances then show a permit")
	}
}

// into puts what was given in the place of what is.
func (f *accessFlags) into(cmd *cobra.Command, a *apiv1.Access) error {
	if cmd.Flags().Changed("server") {
		a.Servers = orAny(f.servers)
	}
	if cmd.Flags().Changed("allow") {
		a.Allow = orAny(f.allow)
	}
	if f.key == "" {
		return nil
	}
	text, err := command.ReadFile(cmd.Context(), f.key)
	if err != nil {
		return err
	}
	public, err := permit.ParsePublic(text)
	if err != nil {
		return exit.Failf(exit.Usage, "`scaffold service keygen FILE` makes one", "%s: %v", f.key, err)
	}
	a.Key = corenames.FormatKey(public)
	return nil
}

// Anybody is, alone in a list, the word for no list: whoever it is.
const Anybody = "any"

func orAny(list []string) []string {
	if slices.Equal(list, []string{Anybody}) {
		return nil
	}
	return list
}

// check says what is wrong with the lists for themselves.
func (f *accessFlags) check(cmd *cobra.Command, _ []string) error {
	for flag, list := range map[string][]string{"server": f.servers, "allow": f.allow} {
		if len(list) > 1 && slices.Contains(list, Anybody) {
			return fmt.Errorf("%s: --%s: %s stands alone or not at all", cmd.CommandPath(), flag, Anybody)
		}
	}
	return nil
}

func serviceAccess(a remote.Admin) *cobra.Command {
	var flags accessFlags
	cmd := &cobra.Command{
		Use:   "access NAME",
		Short: "Say who may serve a service, and who may connect to it",
		Long: `Access replaces the lists that are given and leaves the other one. Clients that may not connect get "permission
denied" at once. Who loses the right loses the connections that it has, too; instances that may not serve any more
get no new flows.`,
		Example: `  scaffold service access db --server s1,s2 --allow service:web
  scaffold service access db --allow any
  scaffold service access db --allow c1,fd5d:0:1:100::/56`,
		Args: cobra.MatchAll(cobra.ExactArgs(1), flags.check),
	}
	flags.add(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("server") && !cmd.Flags().Changed("allow") {
			return exit.Failf(exit.Usage, "`scaffold service show "+args[0]+"` prints who may", "access: nothing to change was given")
		}
		part := func(s *apiv1.Service) (text string) {
			if cmd.Flags().Changed("server") {
				text = strings.Join(s.GetAccess().GetServers(), ",")
			}
			if cmd.Flags().Changed("allow") {
				text += "\n" + strings.Join(s.GetAccess().GetAllow(), ",")
			}
			return text
		}
		c, at, err := a.DialAdmin()
		if err != nil {
			return err
		}
		s, err := edit(cmd.Context(), c, at, args[0], part, func(ctx context.Context, c apiv1connect.AdminClient, at string, now *apiv1.Service) (*apiv1.Service, error) {
			req := &apiv1.UpdateAccessRequest{Name: now.Name, Access: now.Access, Version: now.Version, Replace: now.Version == 0} // a controller of before tells none
			if req.Access == nil {
				req.Access = &apiv1.Access{}
			}
			if err := flags.into(cmd, req.Access); err != nil {
				return nil, err
			}
			req.AnyServer, req.AnyClient = len(req.Access.Servers) == 0, len(req.Access.Allow) == 0 // checkLines refused what nobody typed
			return remote.Ask(ctx, c.UpdateAccess, req, at, remote.ListServices)
		})
		return answered(a, cmd, s, err)
	}
	return cmd
}

// drawAccess is who may, for people.
func drawAccess(t *output.Table, s *apiv1.Service) {
	a := s.GetAccess()
	if a.GetKey() != "" {
		t.Row("key", a.Key)
	}
	if len(a.GetServers()) > 0 {
		t.Row("servers", strings.Join(a.Servers, ", "))
	}
	if len(a.GetAllow()) > 0 {
		t.Row("allow", strings.Join(a.Allow, ", "))
	}
	if s.GetOwner() != "" {
		t.Row("files of", s.Owner)
	}
}
