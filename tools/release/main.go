// Command release builds the files of a release: an archive of the program for each platform with a software bill of
// materials, the chart as an archive and as an OCI layout, checksums, a krew manifest and a Homebrew formula. The same
// sources give the same bytes on every machine.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	o := options{}
	flag.StringVar(&o.root, "root", "../..", "folder of the repository")
	flag.StringVar(&o.out, "out", "", "folder for the files, which is created")
	flag.StringVar(&o.version, "version", "", "version of the release, such as v1.2.3")
	flag.StringVar(
		&o.url, "url", "https://github.com/xpkg-dev/xpkg/releases/download",
		"address below which the files of each version are published",
	)
	platforms := flag.String(
		"platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"platforms of the program",
	)
	planes := flag.String("control-planes", "linux/amd64,linux/arm64", "platforms of the control plane")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := o.parse(*platforms, *planes)
	if err == nil {
		err = o.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are the options of a release.
type options struct {
	root, out, version, url string
	platforms, planes       []platform
	// time is the time of the commit, which all files have.
	time time.Time
}

// platform is an operating system with an architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// executable returns the file name of a program.
func (p platform) executable(name string) string {
	if p.os == "windows" {
		return name + ".exe"
	}
	return name
}

// versionPattern is the form of versions: a semantic version with a v.
var versionPattern = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// parse checks the options, and parses the lists of platforms.
func (o *options) parse(platforms, planes string) error {
	if !versionPattern.MatchString(o.version) {
		return fmt.Errorf("-version is %q; use a semantic version such as v1.2.3", o.version)
	}
	if o.out == "" {
		return fmt.Errorf("-out is missing: name the folder for the files")
	}
	var err error
	if o.platforms, err = parsePlatforms(platforms); err != nil {
		return err
	}
	o.planes, err = parsePlatforms(planes)
	return err
}

// parsePlatforms parses a list of platforms.
func parsePlatforms(list string) ([]platform, error) {
	var out []platform
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		system, arch, ok := strings.Cut(text, "/")
		if !ok {
			return nil, fmt.Errorf("%q is no platform; use a form such as linux/amd64", text)
		}
		out = append(out, platform{system, arch})
	}
	return out, nil
}

// run builds all files.
func (o *options) run(ctx context.Context) error {
	var err error
	if o.time, err = commitTime(ctx, o.root); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "xpkg-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	documents, err := o.documents(ctx, work)
	if err != nil {
		return err
	}
	archives := map[platform]artifact{}
	for _, p := range o.platforms {
		if archives[p], err = o.program(ctx, work, p, documents); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, p := range o.planes {
		if err := o.controlPlane(ctx, work, p); err != nil {
			return fmt.Errorf("control plane for %s: %w", p, err)
		}
	}
	if err := o.chart(); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	if err := o.manifests(archives); err != nil {
		return err
	}
	return writeChecksums(o.out)
}

// commitTime returns SOURCE_DATE_EPOCH or the time of the commit of a repository.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := output(exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%ct"))
		if err != nil {
			return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time of the commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// documents returns the files of each archive besides the program: documents, and the completions and manual pages,
// which a program of this machine writes.
func (o *options) documents(ctx context.Context, work string) ([]file, error) {
	var out []file
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(o.root, name))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: name, content: content})
	}
	host := filepath.Join(work, "host")
	if err := o.compile(ctx, host, platform{}); err != nil {
		return nil, err
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := output(exec.CommandContext(ctx, host, "completion", shell))
		if err != nil {
			return nil, fmt.Errorf("completion of %s: %w", shell, err)
		}
		out = append(out, file{name: "completions/xpkg." + extensions[shell], content: script})
	}
	pages, err := manPages(ctx, host, filepath.Join(work, "man"))
	return append(out, pages...), err
}

// manPages returns the manual pages that a program writes, ordered by name.
func manPages(ctx context.Context, program, dir string) ([]file, error) {
	if _, err := output(exec.CommandContext(ctx, program, "man", dir)); err != nil {
		return nil, fmt.Errorf("manual pages: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []file
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: "man/man1/" + e.Name(), content: content})
	}
	return out, nil
}

// extensions are the file extensions of the completions.
var extensions = map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"}

// compile builds the program without paths, build ID and state of the repository. The zero platform is this machine.
func (o *options) compile(ctx context.Context, path string, p platform) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", "-s -w -buildid= -X github.com/xpkg-dev/xpkg/internal/version.Version="+o.version, "-o", path,
		"./cmd/xpkg")
	cmd.Dir = o.root
	cmd.Env = environment(p)
	_, err := output(cmd)
	return err
}

// environment returns the environment of a build, in which no setting of the user affects the result.
func environment(p platform) []string {
	out := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	if p != (platform{}) {
		out = append(out, "GOOS="+p.os, "GOARCH="+p.arch)
	}
	return out
}

// output runs a command and returns its output. An error contains the messages of the command.
func output(cmd *exec.Cmd) ([]byte, error) {
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return nil,
			fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, cmp.Or(strings.TrimSpace(messages.String()), "no message"))
	}
	return out, nil
}
