package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/manifest"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// applyTime bounds an apply of services by the thousand.
const applyTime = 2 * time.Minute

const aboutApply = `Apply makes services, and sites and entries of boost, what files say: it creates those that are missing, changes what differs, and with
--prune removes those that it made before and that the files no longer name. All is checked first: a
mistake anywhere, of which each is told with its file, line and column, changes nothing.

What the files do not say of one stays as somebody has set it. What they said at the last apply
and do not say any more goes back to its default, unless somebody has changed it by hand since.

Each belongs to the files that named it first: --owner tells sets of files apart.`

// manifests are the flags of what reads files of services.
type manifests struct {
	remote.Admin
	paths []string
	plan  string
	req   apiv1.ApplyRequest
}

// ApplyCommand is `scaffold apply`.
func ApplyCommand() *cobra.Command {
	m := &manifests{}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Make services and boost what files say",
		Long:  aboutApply,
		Example: `  scaffold apply -f services.yaml
  scaffold apply -f services/ --prune --dry-run
  scaffold apply -f services.yaml --plan plan.json   # plan.json: of diff -o json
  scaffold export | scaffold apply -f - --api http://[2001:db8::2]:23728`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.apply(cmd) },
	}
	m.flags(cmd)
	cmd.Flags().BoolVar(&m.req.DryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.Flags().StringVar(&m.plan, "plan", "", "only if what would be done is still what this file says, which diff -o json wrote")
	return cmd
}

// DiffCommand is `scaffold diff`.
func DiffCommand() *cobra.Command {
	m := &manifests{}
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what apply would change; exit code 7 if anything",
		Long: `Diff shows what apply would change, and ends with exit code 7 if it would change any service, or site or entry of
boost. That one would only come to belong to the files (adopt), or to nobody's (release), is shown, and the exit code is
0: nothing of it changes.`,
		Example: `  scaffold diff -f services.yaml
  scaffold diff -f services/ --prune`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.diff(cmd) },
	}
	m.flags(cmd)
	return cmd
}

func (m *manifests) flags(cmd *cobra.Command) {
	m.Admin = remote.AddAdmin(cmd)
	cmd.Flags().StringArrayVarP(&m.paths, "file", "f", nil, "file, directory of *.yaml, or - for standard input; repeat for more")
	cmd.Flags().StringVar(&m.req.Owner, "owner", "apply", "name of this set of files: others may have services of their own")
	cmd.Flags().BoolVar(&m.req.Prune, "prune", false, "remove what these files made and no longer name")
	cmd.Flags().BoolVar(&m.req.Force, "force", false, "also take over what is of other owners, remove services that have instances, and let agents of boost reset what they carry")
	cmd.MarkFlagRequired("file")
}

// ask sends the files to the controller; all that is wrong with them is the error.
func (m *manifests) ask(cmd *cobra.Command) (*apiv1.ApplyResponse, error) {
	set, err := command.Interruptible(cmd.Context(), func() (*manifest.Set, error) { return manifest.Load(m.paths, cmd.InOrStdin()) })
	if err != nil {
		return nil, badFiles(err, exit.Usage)
	}
	client, endpoint, err := m.DialAdmin()
	if err != nil {
		return nil, err
	}
	m.req.Services, m.req.BoostSites, m.req.BoostEntries, m.req.KnowsBoost = set.Services, set.Sites, set.Entries, true
	if err := m.planned(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), applyTime)
	defer cancel()
	ask := func(req *apiv1.ApplyRequest) (*apiv1.ApplyResponse, error) {
		resp, err := remote.Ask(ctx, client.Apply, req, endpoint, remote.ListServices)
		if err == nil && len(resp.Problems) == 0 {
			err = noticed(resp, set, req.DryRun)
		}
		return resp, err
	}
	if len(set.Sites)+len(set.Entries) > 0 && !m.req.DryRun { // one that would do half of it is to do nothing
		look := proto.CloneOf(&m.req)
		look.DryRun = true
		if _, err := ask(look); err != nil {
			return nil, err
		}
	}
	resp, err := ask(&m.req)
	if err != nil && !m.req.DryRun {
		err = inDoubt(err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range resp.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", w)
	}
	if len(resp.Problems) == 0 {
		return resp, nil
	}
	code := exit.Refused
	for _, p := range resp.Problems {
		if !p.Refused {
			code = exit.Usage
		}
	}
	return nil, badFiles(set.Blame(resp.Problems), code)
}

// inDoubt says what is known of an apply whose answer did not come: nothing, where it may have been on its way.
func inDoubt(err error) error {
	var known *exit.Error
	if !errors.As(err, &known) || known.Code != exit.Unreachable {
		return err
	}
	for _, lost := range []string{"has not answered in time", "the connection broke off"} {
		if strings.Contains(err.Error(), lost) {
			return exit.Fail(known.Code, "it is not known whether the changes were made: `scaffold diff` with the same files shows what is left", known.Err)
		}
	}
	return err
}

// noticed refuses the answer of a controller that has taken no notice of boost: it is of a version that knows it in no file. One
// that was only to look has changed nothing; another one may lead since then, and has changed the services.
func noticed(resp *apiv1.ApplyResponse, set *manifest.Set, looked bool) error {
	boosts := 0
	for _, c := range resp.Changes {
		if c.Kind != "" {
			boosts++
		}
	}
	switch {
	case boosts >= len(set.Sites)+len(set.Entries):
		return nil
	case looked:
		return exit.Failf(exit.Refused, "upgrade the controller, or take boost out of the files (scaffold boost site, scaffold boost allow)",
			"the controller takes services from files, and nothing of boost: it is of an older version, and nothing was changed")
	}
	return exit.Failf(exit.Failed, "`scaffold diff` with the same files shows what is left; upgrade all controllers, then apply them again",
		"another controller leads than a moment ago, of an older version that takes nothing of boost from files: %s made, and nothing of boost was changed",
		command.Counts(resp.Done, "change of services was", "changes of services were"))
}

// planned reads what was agreed on.
func (m *manifests) planned() error {
	if m.plan == "" {
		return nil
	}
	text, err := os.ReadFile(m.plan)
	if err != nil {
		return err
	}
	plan := new(apiv1.ApplyResponse)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, plan); err != nil {
		return exit.Failf(exit.Usage, "`scaffold diff -o json` with the same files writes one", "%s is no plan: %v", m.plan, err)
	}
	m.req.Planned, m.req.Plan = true, plan.Changes
	return nil
}

// badFiles is what is wrong with files, one mistake a line.
func badFiles(err error, code exit.Code) error {
	var bad yamlfile.Errors
	if !errors.As(err, &bad) {
		return err // the file itself: its kind says the code
	}
	hint := "nothing was changed"
	if strings.Contains(err.Error(), "force") {
		hint += "; --force does it anyway"
	}
	if len(bad) > 1 {
		err = fmt.Errorf("%d mistakes:\n%w", len(bad), err)
	}
	return exit.Fail(code, hint, err)
}

func (m *manifests) apply(cmd *cobra.Command) error {
	resp, err := m.ask(cmd)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if m.JSON() {
		err = output.WriteJSON(w, resp, "  ")
	} else {
		err = m.told(w, resp)
	}
	if err != nil {
		return err
	}
	if len(resp.Pending) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: saved, and not applied yet by %s: `scaffold router ls` shows whether they are connected\n", strings.Join(resp.Pending, ", "))
	}
	if resp.Failed != "" {
		return exit.Failf(exit.Failed, "the changes above marked \"not done\" were not made; the same apply again does the rest",
			"%s made, then saving failed: %s", command.Counts(resp.Done, "change was", "changes were"), resp.Failed)
	}
	return nil
}

var applied = map[string]string{"create": "created", "update": "changed", "remove": "removed", "adopt": "adopted", "release": "released", "none": "unchanged"}

// thing is what changes, by kind and name.
func thing(c *apiv1.ServiceChange) string { return cmp.Or(c.Kind, "service") + " " + c.Name }

// told says what was done, a line for each thing.
func (m *manifests) told(w io.Writer, resp *apiv1.ApplyResponse) error {
	for _, c := range resp.Changes {
		note := ""
		switch {
		case m.req.DryRun && c.Action != "none":
			note = " (dry run)"
		case resp.Failed != "" && !c.Done && c.Action != "none":
			note = " (not done)"
		}
		if _, err := fmt.Fprintf(w, "%s %s%s\n", thing(c), applied[c.Action], note); err != nil {
			return err
		}
	}
	return nil
}

func (m *manifests) diff(cmd *cobra.Command) error {
	m.req.DryRun = true
	resp, err := m.ask(cmd)
	if err != nil {
		return err
	}
	differs, one, more := 0, "service differs", "services differ"
	for _, c := range resp.Changes {
		if c.Action == "create" || c.Action == "remove" || len(c.Fields) > 0 {
			differs++
			if c.Kind != "" {
				one, more = c.Kind+" differs", "services, sites and entries of boost differ"
			}
		}
	}
	if m.JSON() {
		err = output.WriteJSON(cmd.OutOrStdout(), resp, "  ")
	} else {
		err = drawDiff(cmd.OutOrStdout(), resp.Changes)
	}
	if err != nil || differs == 0 {
		return err
	}
	return exit.Failf(exit.Unmet, "`scaffold apply` with the same flags makes them equal", "%s from the files", command.Counts(uint32(differs), one, more))
}

func drawDiff(w io.Writer, changes []*apiv1.ServiceChange) error {
	var b strings.Builder
	for _, c := range changes {
		switch {
		case c.Action == "create":
			fmt.Fprintf(&b, "+ %s\n", thing(c))
		case c.Action == "remove":
			fmt.Fprintf(&b, "- %s\n", thing(c))
		case len(c.Fields) > 0:
			fmt.Fprintf(&b, "  %s\n", thing(c))
		case c.Action == "adopt":
			fmt.Fprintf(&b, "  %s  # adopt: is to belong to these files\n", thing(c))
		case c.Action == "release":
			fmt.Fprintf(&b, "  %s  # release: is to belong to nobody's files\n", thing(c))
		}
		for _, f := range c.Fields {
			why := ""
			if f.Why != "" {
				why = "  # " + f.Why
			}
			if f.From != "" || c.Action != "create" {
				fmt.Fprintf(&b, "-   %s: %s%s\n", f.Field, output.OrElse(f.From, "(default)"), why)
			}
			fmt.Fprintf(&b, "+   %s: %s\n", f.Field, output.OrElse(f.To, "(default)"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ExportCommand is `scaffold export`.
func ExportCommand() *cobra.Command {
	var schema bool
	cmd := &cobra.Command{
		Use:   "export [SERVICE...]",
		Short: "Write services and boost as a file that apply takes",
		Long: `Export writes what services are, and sites and entries of boost, as far as it is not the default, in the form that
apply takes: to apply the same again changes nothing. Of services that are named it writes these alone. Drains and
instances are not part of it.`,
		Example: `  scaffold export > services.yaml
  scaffold export web db
  scaffold export --schema > services.schema.json   # for editors`,
	}
	a := remote.AddAdmin(cmd)
	cmd.Flags().BoolVar(&schema, "schema", false, "write the JSON schema of such files instead")
	command.Exclusive(cmd, "schema api", "schema lab", "schema output")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if schema && len(args) > 0 {
			return fmt.Errorf("--schema describes all services alike: leave %q out", args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if schema {
			_, err := cmd.OutOrStdout().Write(manifest.Schema())
			return err
		}
		client, endpoint, err := a.DialAdmin()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), applyTime)
		defer cancel()
		resp, err := remote.Ask(ctx, client.Export, &apiv1.ExportRequest{Names: args}, endpoint, remote.ListServices)
		if err != nil {
			return err
		}
		if a.JSON() {
			return output.WriteJSON(cmd.OutOrStdout(), resp, "  ")
		}
		text, err := manifest.Format(resp)
		if err == nil {
			_, err = cmd.OutOrStdout().Write(text)
		}
		return err
	}
	return cmd
}
