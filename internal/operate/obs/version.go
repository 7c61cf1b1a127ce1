package obs

import (
	"runtime/debug"
	"strings"
)

// version is set by the linker: -X scaffold.dev/scaffold/internal/operate/obs.version=v1.2.3.
var version string

// revision is set by the linker too: the commit that was built.
var revision string

// Commit is the commit that was built, as far as anybody knows.
func Commit() string {
	if revision != "" {
		return revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return commit(info.Settings)
}

// Version names this build: what the linker was told, else the module's version, else the commit.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return commit(info.Settings)
}

func commit(settings []debug.BuildSetting) string {
	short, dirty := "devel", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			short = "devel-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return strings.TrimSpace(short + dirty)
}
