package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// configMax is far more than any daemon's flags need: who names a disk image by mistake is told so.
const configMax = 1 << 20

// configHint is what to do about a configuration file with errors.
const configHint = "its keys are the flags that `scaffold %s --help` lists, without the dashes; what can be repeated is a list"

// withConfig gives a daemon the flag --config: a YAML file whose keys are the daemon's flags. It is
// read before the required flags are asked for, so a file may give them; what is typed wins. With
// --check the daemon ends when check has seen all flags.
func withConfig(cmd *cobra.Command, check func() error) *cobra.Command {
	var path string
	var only bool
	cmd.Flags().StringVar(&path, "config", "", "YAML file of these flags, KEY: VALUE or KEY: [VALUE, ...]; flags that are typed win")
	cmd.Flags().BoolVar(&only, "check", false, "say what is wrong with the flags and the file, and do nothing else")
	cmd.MarkFlagFilename("config", "yaml", "yml")
	hint := fmt.Sprintf(configHint, cmd.Name())
	file := &configFile{}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if path == "" {
			return nil
		}
		text, err := readConfig(path)
		if err != nil {
			return err
		}
		if file, err = parseConfig(path, text); err == nil {
			err = file.apply(cmd.Flags())
		}
		return fail(ExitUsage, hint, err)
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if only {
			return file.blame(fail(ExitUsage, hint, check()))
		}
		return file.blame(run(cmd, args))
	}
	return cmd
}

func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, failf(ExitNotFound, "`scaffold install` and `scaffold join` write one", "--config %s: there is no such file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, configMax+1))
	if err != nil {
		return nil, fail(ExitUsage, "", fmt.Errorf("--config: %w", err))
	}
	if len(text) > configMax {
		return nil, failf(ExitUsage, "", "--config %s: larger than %d bytes: no configuration", path, configMax)
	}
	return text, nil
}

// apply sets the flags that the file names. A flag that was typed keeps its value, but the file's has
// to be good all the same: it counts again as soon as nobody types the flag.
func (f *configFile) apply(flags *pflag.FlagSet) error {
	for _, e := range f.entries {
		flag := flags.Lookup(e.key)
		if flag == nil || flag.Hidden || notInFile(e.key) {
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

// notInFile are the flags that are about the command line itself.
func notInFile(flag string) bool { return flag == "config" || flag == "check" || flag == "help" }

// nearest names the key that was likely meant.
func nearest(key string, flags *pflag.FlagSet) string {
	best, distance := "", len(key)/2+1
	flags.VisitAll(func(f *pflag.Flag) {
		if d := editDistance(key, f.Name); d < distance && !notInFile(f.Name) {
			best, distance = f.Name, d
		}
	})
	if best == "" {
		return "there is no such flag"
	}
	return fmt.Sprintf("is %q meant?", best)
}

// editDistance counts the letters to add, take away or change.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := left
			if a[i] != b[j] {
				change++
			}
			left = row[j+1]
			row[j+1] = min(change, left+1, row[j]+1)
		}
	}
	return row[len(b)]
}
