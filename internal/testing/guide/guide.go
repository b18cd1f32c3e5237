// Package guide executes the commands of the guides in docs/guides from top to bottom, as a reader would.
package guide

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

const (
	guides = "../../docs/guides"
	files  = "testdata/guides"
	// limit is for a machine that is busy with other tests.
	limit = 2 * time.Minute
)

// Guide is a guide whose commands a test executes. Commands are named by their beginnings.
type Guide struct {
	// Name is the name of the file in docs/guides, and of the file in testdata/guides with the files that its reader has
	// and the commands that precede the guide.
	Name string
	// Replaced are texts of the guide and their values in the test. $HOME is the home folder of the reader.
	Replaced map[string]string
	// Exits are the exit codes of commands that do not end with 0.
	Exits map[string]int
	// Skipped are the commands that the test cannot execute, with the reason.
	Skipped map[string]string
	// Tools are the commands that need a program that not every machine has, with the program.
	Tools map[string]string
	// Loose are the commands whose shown output is an example: only their exit code is checked.
	Loose []string
	// Awaited are the commands that read a state which the manager reaches after the command before it: they are repeated
	// until they print what the guide shows.
	Awaited []string
	// Served are the commands that run until they are stopped: until the next of them, or the end of the guide.
	Served []string
	// Before are commands to execute before a command of the guide, which stand for changes elsewhere.
	Before map[string]string
}

// Reader is the reader of one or several guides.
type Reader struct {
	// Folder is the folder in which the commands are executed.
	Folder string
	// Env is the environment of the commands.
	Env []string
}

// Home returns the home folder of the reader.
func (r *Reader) Home() string {
	home := ""
	for _, variable := range r.Env {
		if value, ok := strings.CutPrefix(variable, "HOME="); ok {
			home = value
		}
	}
	return home
}

// Step is a command of a guide with the lines of its output that the guide shows.
type Step struct {
	Command string
	Output  []string
}

var (
	// block matches the blocks of a document that show a terminal.
	block = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	// homeFile matches the files in the home folder that a document shows.
	homeFile = regexp.MustCompile("(?ms)^```yaml\n# (~/[^\n]+)\n(.*?)^```$")
	// document matches the end of a command with its standard input.
	document = regexp.MustCompile(`<<(\w+)$`)
)

// Steps returns the commands of a document in their order. A line with … stands for output that is not shown.
func Steps(text string) []Step {
	var out []Step
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		end := "" // the last line of the standard input of the command
		for line := range strings.Lines(b[1]) {
			line = strings.TrimRight(line, "\n")
			command, starts := strings.CutPrefix(line, "$ ")
			switch {
			case end != "" || len(out) > 0 && strings.HasSuffix(out[len(out)-1].Command, "\\"):
				out[len(out)-1].Command += "\n" + line
				if line == end {
					end = ""
				}
			case starts:
				out = append(out, Step{Command: command})
				if m := document.FindStringSubmatch(command); m != nil {
					end = m[1]
				}
			case len(out) > 0 && line != "" && line != "…":
				last := &out[len(out)-1]
				last.Output = append(last.Output, line)
			}
		}
	}
	return out
}

// Files returns the names of the guides for which the test has a file.
func Files(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(files, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(paths[i]), ".txtar")
	}
	return paths
}

// Run executes the commands of the guide: each works, in the order of the guide and in one folder, and prints what the
// guide shows.
func (g *Guide) Run(t *testing.T, r *Reader) {
	content, err := os.ReadFile(filepath.Join(guides, g.Name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	g.prepare(t, r, string(content))
	var server *served
	defer func() { server.stop(t) }()
	steps, executed := Steps(string(content)), 0
	g.checkCommands(t, steps)
	for _, s := range steps {
		if g.isSkipped(s.Command) {
			continue
		}
		executed++
		if _, command := byPrefix(g.Before, s.Command); command != "" {
			g.succeed(t, r, command)
		}
		switch variable, isExport := strings.CutPrefix(s.Command, "export "); {
		case isExport:
			r.Env = append(r.Env, g.readdress(r, variable))
		case startsWithAny(g.Served, s.Command):
			server.stop(t)
			server = g.serve(t, r, s)
		default:
			g.execute(t, r, s)
		}
	}
	if executed == 0 {
		t.Error("no command was executed")
	}
}

// prepare writes the files that the reader of a guide has, and executes the commands that precede the guide.
func (g *Guide) prepare(t *testing.T, r *Reader, text string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join(files, g.Name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, content string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(g.readdress(r, content)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range homeFile.FindAllStringSubmatch(text, -1) {
		write(filepath.Join(r.Home(), strings.TrimPrefix(m[1], "~")), m[2])
	}
	for _, f := range archive.Files {
		write(filepath.Join(r.Folder, filepath.FromSlash(f.Name)), string(f.Data))
	}
	for line := range strings.Lines(string(archive.Comment)) {
		if command := strings.TrimSpace(line); command != "" && !strings.HasPrefix(command, "#") {
			g.succeed(t, r, command)
		}
	}
}

// checkCommands fails the test if the guide names commands that are not in it.
func (g *Guide) checkCommands(t *testing.T, steps []Step) {
	t.Helper()
	named := slices.Concat(
		g.Loose, g.Served, g.Awaited, slices.Collect(maps.Keys(g.Exits)), slices.Collect(maps.Keys(g.Skipped)),
		slices.Collect(maps.Keys(g.Tools)), slices.Collect(maps.Keys(g.Before)),
	)
	for _, prefix := range named {
		if !slices.ContainsFunc(steps, func(s Step) bool { return strings.HasPrefix(s.Command, prefix) }) {
			t.Errorf("the guide has no command that starts with %q", prefix)
		}
	}
}

func (g *Guide) isSkipped(command string) bool {
	if _, reason := byPrefix(g.Skipped, command); reason != "" {
		return true
	}
	_, tool := byPrefix(g.Tools, command)
	if tool == "" {
		return false
	}
	_, err := exec.LookPath(tool)
	return err != nil
}

// execute executes a command and compares it with the guide.
func (g *Guide) execute(t *testing.T, r *Reader, s Step) {
	t.Helper()
	begin := time.Now()
	var code int
	var output string
	wait.Until(t, limit, s.Command+" prints the lines of the guide", func() (string, bool) {
		code, output = g.shell(t, r, s.Command)
		return output, !startsWithAny(g.Awaited, s.Command) || g.missing(r, s, output) == ""
	})
	t.Logf("%5.1f s  $ %s", time.Since(begin).Seconds(), s.Command)
	if _, want := byPrefix(g.Exits, s.Command); code != want {
		t.Fatalf("$ %s\nexit code %d, want %d:\n%s", s.Command, code, want, output)
	}
	if line := g.missing(r, s, output); line != "" {
		t.Errorf("$ %s\nthe guide shows %q, which is not printed:\n%s", s.Command, line, output)
	}
}

// missing returns the first line that the guide shows and the command does not print, or "". The lines can have the
// registries of the reader, or those of the guide, as commands that xpkg proposes.
func (g *Guide) missing(r *Reader, s Step, output string) string {
	if startsWithAny(g.Loose, s.Command) {
		return ""
	}
	printed := comparable(output)
	for _, line := range s.Output {
		if !strings.Contains(printed, comparable(g.readdress(r, line))) && !strings.Contains(printed, comparable(line)) {
			return line
		}
	}
	return ""
}

// succeed executes a command that precedes a command of the guide.
func (g *Guide) succeed(t *testing.T, r *Reader, command string) {
	t.Helper()
	if code, output := g.shell(t, r, command); code != 0 {
		t.Fatalf("%s\nexit code %d:\n%s", command, code, output)
	}
}

// shell executes a command as a reader types it, and returns its exit code and its output.
func (g *Guide) shell(t *testing.T, r *Reader, command string) (int, string) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", g.readdress(r, command))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.Folder, r.Env, &output, &output
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), output.String()
}

// served is a command that runs until it is stopped.
type served struct {
	cmd    *exec.Cmd
	output buffer.Buffer
	done   chan struct{}
}

// serve starts a command, and returns when it has printed what the guide shows, or anything.
func (g *Guide) serve(t *testing.T, r *Reader, s Step) *served {
	t.Helper()
	server := &served{cmd: exec.Command("sh", "-c", "exec "+g.readdress(r, s.Command)), done: make(chan struct{})}
	server.cmd.Dir, server.cmd.Env, server.cmd.Stdout, server.cmd.Stderr = r.Folder, r.Env, &server.output, &server.output
	if err := server.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(server.done)
		_ = server.cmd.Wait() // stop checks the state
	}()
	t.Cleanup(func() { _ = server.cmd.Process.Kill() })
	wait.Until(t, limit, s.Command+" serves", func() (string, bool) {
		output := server.output.String()
		select {
		case <-server.done:
			t.Fatalf("$ %s\nit ended:\n%s", s.Command, output)
		default:
		}
		return output, strings.Contains(output, "\n") && g.missing(r, s, output) == ""
	})
	return server
}

// stop stops the command as Ctrl-C does, if there is one.
func (s *served) stop(t *testing.T) {
	t.Helper()
	if s == nil {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Errorf("stop %v: %v\n%s", s.cmd.Args, err, s.output.String())
	}
	<-s.done
}

func (g *Guide) readdress(r *Reader, text string) string {
	for _, from := range slices.Sorted(maps.Keys(g.Replaced)) {
		text = strings.ReplaceAll(text, from, strings.ReplaceAll(g.Replaced[from], "$HOME", r.Home()))
	}
	return text
}

// byPrefix returns the longest key with which a text starts, and its value.
func byPrefix[V any](values map[string]V, text string) (key string, value V) {
	for prefix := range values {
		if strings.HasPrefix(text, prefix) && len(prefix) > len(key) {
			key, value = prefix, values[prefix]
		}
	}
	return key, value
}

func startsWithAny(prefixes []string, text string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

var variable = regexp.MustCompile(
	`[0-9a-f]{64}|\b[0-9a-f]{12}\b|\b\d{4}-\d{2}-\d{2}\b|\d+(\.\d+)? (B|KiB|MiB)|\b\d+[smhd]\b`,
)

// comparable returns a text without the differences between two machines and days: digests, sizes, dates, ages, and the
// width of columns.
func comparable(text string) string {
	return strings.Join(strings.Fields(variable.ReplaceAllString(text, "*")), " ")
}
