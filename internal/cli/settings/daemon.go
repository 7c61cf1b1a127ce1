// Package settings is the file that has a daemon's flags: how it is read, checked and changed.
package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
)

// configMax is far more than any daemon's flags need: who names a disk image by mistake is told so.
const configMax = 1 << 20

// configHint is what to do about a configuration file with errors.
const configHint = "its keys are the flags that `scaffold %s --help` lists, without the dashes; what can be repeated is a list"

// With gives a daemon the flag --config: a YAML file whose keys are the daemon's flags. It is
// read before the required flags are asked for, so a file may give them; what is typed wins. With
// --check the daemon ends when check has seen all flags.
func With(cmd *cobra.Command, check func() error) *cobra.Command {
	var path string
	var only bool
	cmd.Flags().StringVar(&path, "config", "", "YAML file of these flags, KEY: VALUE or KEY: [VALUE, ...]; flags that are typed win")
	cmd.Flags().BoolVar(&only, "check", false, "say what is wrong with the flags and the file, and do nothing else")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	hint := fmt.Sprintf("`scaffold %s --help` lists the flags", cmd.Name())
	file := &File{}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if path == "" {
			return nil
		}
		hint = fmt.Sprintf(configHint, cmd.Name())
		text, err := readConfig(cmd.Context(), path)
		if err != nil {
			return err
		}
		if file, err = Parse(path, text); err == nil {
			err = file.Apply(cmd.Flags())
		}
		return exit.Fail(exit.Usage, hint, err)
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if only {
			return file.blame(exit.Fail(exit.Usage, hint, command.Attempt(cmd.Context(), check)))
		}
		return file.blame(run(cmd, args))
	}
	return cmd
}

// readConfig reads a configuration until ctx ends.
func readConfig(ctx context.Context, path string) ([]byte, error) {
	return command.Interruptible(ctx, func() ([]byte, error) { return readSmall(path) })
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, exit.Failf(exit.NotFound, "`scaffold install` and `scaffold join` write one", "--config %s: there is no such file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, configMax+1))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", fmt.Errorf("--config: %w", err))
	}
	if len(text) > configMax {
		return nil, exit.Failf(exit.Usage, "", "--config %s: larger than %d bytes: no configuration", path, configMax)
	}
	return text, nil
}

// Apply sets the flags that the file names. A flag that was typed keeps its value, but the file's has
// to be good all the same: it counts again as soon as nobody types the flag.
func (f *File) Apply(flags *pflag.FlagSet) error {
	for _, e := range f.entries {
		flag := flags.Lookup(e.key)
		if flag == nil || flag.Hidden || NotInFile(e.key) {
			f.Errorf(e.line, 0, "unknown key %q; %s", e.key, nearest(e.key, flags))
			continue
		}
		typed := flag.Changed
		if err := e.set(flag.Value, typed); err != nil {
			f.Errorf(err.line, 0, "%s: %s", e.key, err.text)
			continue
		}
		flag.Changed = true
		if !typed {
			f.used = append(f.used, e)
		}
	}
	return f.Err()
}

// NotInFile are the flags that are about the command line itself.
func NotInFile(flag string) bool { return flag == "config" || flag == "check" || flag == "help" }

// nearest names the key that was likely meant.
func nearest(key string, flags *pflag.FlagSet) string {
	best, distance := "", len(key)/2+1
	flags.VisitAll(func(f *pflag.Flag) {
		if d := command.EditDistance(key, f.Name); d < distance && !NotInFile(f.Name) {
			best, distance = f.Name, d
		}
	})
	if best == "" {
		return "there is no such flag"
	}
	return fmt.Sprintf("is %q meant?", best)
}
