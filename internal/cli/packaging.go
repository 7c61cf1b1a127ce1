package cli

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/operate/setup"
)

// packagingCommand writes what a package has besides the program: units, manual, completion. It is for
// who makes packages (scripts/deb.sh), and hidden from others.
func packagingCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "packaging DIRECTORY",
		Short:  "Write the files of a package: units, manual, completion",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE:   func(cmd *cobra.Command, args []string) error { return packaging(cmd.Root(), args[0]) },
	}
}

func packaging(root *cobra.Command, dir string) error {
	root.DisableAutoGenTag = true
	for path, text := range setup.Packaged() {
		if err := put(dir, path, text); err != nil {
			return err
		}
	}
	for path, generate := range completions {
		var out bytes.Buffer
		if err := generate(root, &out); err != nil {
			return err
		}
		if err := put(dir, "usr/share/"+path, out.Bytes()); err != nil {
			return err
		}
	}
	return eachPage(root, func(path, text string) error {
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		z.Write([]byte(text)) //nolint:errcheck // into memory
		if err := z.Close(); err != nil {
			return err
		}
		return put(dir, "usr/share/man/"+path+".gz", packed.Bytes())
	})
}

func put(dir, path string, text []byte) error {
	to := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
