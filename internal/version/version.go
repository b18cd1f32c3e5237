// Package version contains the version of the program.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// unreleased is the version of a program that was built from a checkout without a version.
const unreleased = "v0.0.0-dev"

// Version is the version of the program. The linker sets it in released programs; `go install MODULE@VERSION`
// records it in the program.
var Version string

// AnnotationManager is the annotation of the Lock with the version of the manager.
const AnnotationManager = "xpkg.dev/manager-version"

func init() {
	if Version == "" {
		info, _ := debug.ReadBuildInfo()
		Version = recorded(info)
	}
}

// recorded returns the version of the main module, as the go command recorded it.
func recorded(info *debug.BuildInfo) string {
	if info == nil || !strings.HasPrefix(info.Main.Version, "v") {
		return unreleased
	}
	return info.Main.Version
}

// Released reports whether the Go module proxy can have the version: programs of a checkout have another one.
func Released() bool { return !strings.HasSuffix(Version, "-dev") && !strings.Contains(Version, "+") }

// Info describes a build.
type Info struct {
	Version string `json:"version"`
	// Revision is the commit, and Modified reports that the checkout differed from it. Both are absent if the go
	// command did not record them.
	Revision  string `json:"revision,omitempty"`
	Modified  bool   `json:"modified,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Get returns the description of this build.
func Get() Info {
	out := Info{Version: Version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			out.Revision = s.Value
		case "vcs.modified":
			out.Modified = s.Value == "true"
		}
	}
	return out
}
