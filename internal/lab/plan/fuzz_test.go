package plan

import (
	"os"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A file that was taken can be planned.
func FuzzPlan(f *testing.F) {
	for _, pattern := range []string{"../file/testdata/bad/*.yaml", "../file/testdata/*.yaml", "../../../examples/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, path := range files {
			text, _ := os.ReadFile(path)
			f.Add(text)
		}
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		if f, err := file.Parse("f.yaml", text); err == nil {
			Make(f)
		}
	})
}
