package joining

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// A tokenUse is what `join` and `login` share: a token that is shown to a controller, once that has shown to be of
// the token's network.
type tokenUse struct {
	text, name string
	token      trust.Token
	addresses  []string
}

func (t *tokenUse) add(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&t.text, "token", "", "what \"scaffold token create\" printed; - reads it from standard input")
	cmd.Flags().StringVar(&t.name, "name", "", name)
	cmd.MarkFlagRequired("token")
}

// read takes the token from standard input, where it is said to be there.
func (t *tokenUse) read(cmd *cobra.Command) error {
	if t.text != "-" {
		return nil
	}
	text, err := command.Interruptible(cmd.Context(), func() (text string, err error) {
		_, err = fmt.Fscan(cmd.InOrStdin(), &text)
		return text, err
	})
	if cmd.Context().Err() != nil {
		return cmd.Context().Err()
	}
	if err != nil {
		return exit.Failf(exit.Usage, "`scaffold token create` where the controller runs prints one", "no token on standard input")
	}
	t.text = text
	return nil
}

var errNoAddress = errors.New("where is the controller? the token names no address")

func (t *tokenUse) parse(cmd *cobra.Command, args []string) (err error) {
	if err := t.read(cmd); err != nil {
		return err
	}
	if t.token, err = trust.ParseToken(t.text); err != nil {
		return exit.Fail(exit.Usage, "`scaffold token create` where the controller runs prints one", err)
	}
	t.addresses = args
	if len(args) == 0 {
		t.addresses = t.token.Addresses
	}
	if len(t.addresses) == 0 {
		return exit.Fail(exit.Usage, "write HOST or HOST:PORT behind the token", errNoAddress)
	}
	for i, a := range t.addresses {
		a = api.WithPort(strings.TrimPrefix(strings.TrimPrefix(a, "https://"), "http://"))
		if _, port, err := net.SplitHostPort(a); err != nil || api.CheckPort(port) != nil {
			return exit.Failf(exit.Usage, "write HOST or HOST:PORT, as in 192.0.2.1 or [2001:db8::1]:23728", "%q is no address of a controller", a)
		}
		t.addresses[i] = a
	}
	return nil
}

// cleanName makes a member's name of a machine's or a user's.
func cleanName(s string) string {
	s, _, _ = strings.Cut(strings.ToLower(s), ".")
	return strings.ReplaceAll(s, "_", "-")
}

// meet finds the controller, holds it against the token, and compares the clocks. Nothing secret is said.
func (t *tokenUse) meet(ctx context.Context) (*apiv1.MeetResponse, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	joiner := trust.NewJoiner(key, t.token.Pin)
	ctx, end := context.WithTimeout(ctx, remote.AnswerTime)
	defer end()
	type answer struct {
		at  int
		met *apiv1.MeetResponse
		err error
	}
	answers := make(chan answer, len(t.addresses))
	for i, address := range t.addresses { // all at once: a token carries addresses that lead nowhere from here
		client, err := trustClient(address, joiner.Meeting())
		if err != nil {
			return nil, err
		}
		go func() { // ends with ctx
			met, err := client.Meet(ctx, connect.NewRequest(&apiv1.MeetRequest{}))
			if err != nil {
				answers <- answer{i, nil, unmet(address, err)}
				return
			}
			answers <- answer{i, met.Msg, nil}
		}()
	}
	failures := make([]error, len(t.addresses))
	for range t.addresses {
		a := <-answers
		if failures[a.at] = a.err; a.err == nil {
			t.addresses[0], t.addresses[a.at] = t.addresses[a.at], t.addresses[0]
			return a.met, compareClocks(time.UnixMilli(a.met.NowUnixMs), time.Now())
		}
	}
	return nil, inOneLine(failures)
}

// inOneLine is all that was met in vain, with the code and the hint of the first.
func inOneLine(failures []error) error {
	var first *exit.Error
	if !errors.As(failures[0], &first) {
		return errors.Join(failures...)
	}
	var all []string
	for _, f := range failures {
		all = append(all, f.Error())
	}
	return exit.Failf(first.Code, first.Hint, "%s", strings.Join(all, "; "))
}

func trustClient(address string, who *tls.Config) (apiv1connect.TrustClient, error) {
	client, base, err := api.DialAs("https://"+address, who)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", err)
	}
	return apiv1connect.NewTrustClient(client, base), nil
}

// unmet says why a controller was not met.
func unmet(address string, err error) error {
	said := said(err)
	switch {
	case strings.Contains(said, trust.ErrPin.Error()):
		return exit.Failf(exit.Refused, "is the address right, and the token of this network?", "%s: %s", address, said)
	case strings.Contains(said, "first record does not look like a TLS handshake"), strings.Contains(said, "server gave HTTP response"):
		return exit.Failf(exit.Refused, "start the controller with --trust keys; an open network is joined without a token", "%s: it does not speak TLS: that network is open, or it is no controller", address)
	}
	return exit.Failf(exit.Unreachable, "is the controller running there, and its port open? `scaffold controld` listens on port 23728 if nothing else is said", "no answer from %s: %s", address, api.Plainly(err))
}

func said(err error) string {
	var known *connect.Error
	if errors.As(err, &known) {
		return known.Message()
	}
	return err.Error()
}

func compareClocks(theirs, ours time.Time) error {
	apart := ours.Sub(theirs).Round(time.Second)
	if apart.Abs() <= trust.Skew {
		return nil
	}
	return exit.Failf(exit.Refused, "set the clock that is wrong, here or there; NTP keeps them right", "the clocks are %v apart: this machine's says %s, the controller's %s",
		apart.Abs(), trust.Stamp(ours), trust.Stamp(theirs))
}

// needs says who may keep the key.
func (t *tokenUse) needs() string {
	if t.token.Role == trust.Admin {
		return "the directory of this user's logins cannot be written: log in as the user who is to give the commands"
	}
	return "this needs root: try again with sudo"
}

// redeem makes the directory's key a member's.
func (t *tokenUse) redeem(ctx context.Context, dir trust.Directory) error {
	key, err := dir.Key()
	if err != nil {
		return exit.Fail(exit.Missing, t.needs(), err)
	}
	joiner := trust.NewJoiner(key, t.token.Pin)
	client, err := trustClient(t.addresses[0], joiner.Config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
	defer cancel()
	answer, err := client.Redeem(ctx, connect.NewRequest(&apiv1.RedeemRequest{Id: t.token.ID[:], Secret: t.token.Secret[:], Name: t.name}))
	if err != nil {
		return remote.Explain(err, "https://"+t.addresses[0], "")
	}
	credential := trust.Credential{Certificate: answer.Msg.Certificate, Roots: answer.Msg.Roots}
	if _, err := trust.NewMember(key, credential); err != nil {
		return fmt.Errorf("the controller's answer: %w", err)
	}
	if err := dir.Save(credential); err != nil {
		return err
	}
	return dir.SaveAddresses(t.addresses)
}
