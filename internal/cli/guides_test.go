package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/testing/race"
)

// The same folder has the same digest on every machine, so the digests in the guide are the
// digests of the example.
func TestGuideShowsTheOutputOfTheExample(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/build-and-publish.md")
	if err != nil {
		t.Fatal(err)
	}
	contains := func(line string) {
		if !strings.Contains(string(guide), line) {
			t.Errorf("the guide does not contain %q", line)
		}
	}
	file := filepath.Join(t.TempDir(), "provider-hello.xpkg")
	build := []string{"build", "-f", "../../examples/provider-hello/package", "-o", file}
	_, digest, _ := strings.Cut(printed(t, append(build, "--platform", "linux/arm64")...), "objects, ")
	contains("linux/arm64       " + strings.TrimSpace(digest))
	contains(strings.TrimPrefix(printed(t, build...), filepath.Dir(file)+"/"))
	for line := range strings.Lines(printed(t, "inspect", "--cache-dir", t.TempDir(), file)) {
		if strings.Contains(line, " sha256:") && !strings.HasPrefix(line, "source") {
			contains(line)
		}
	}
}

// TestCommandsInDocumentsParse proves that the commands in the README, the guides and the Helm chart exist with the
// arguments and flags that the documents show.
func TestCommandsInDocumentsParse(t *testing.T) {
	race.SkipSequential(t)
	pages, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	others, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	chart, err := filepath.Glob("../../charts/xpkg/*.*")
	if err != nil {
		t.Fatal(err)
	}
	readmes, err := filepath.Glob("author/scaffold/files/*/README.md.tmpl")
	if err != nil || len(readmes) != 4 {
		t.Fatalf("the READMEs of `xpkg init`: %q, %v", readmes, err)
	}
	const notes = "../../charts/xpkg/templates/NOTES.txt"
	checked, results := 0, map[string]error{}
	for _, page := range slices.Concat(pages, others, chart, readmes, []string{
		"../../README.md", "../../examples/README.md", "../../charts/xpkg/monitoring/alerts.yaml", notes,
	}) {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := templateValue.ReplaceAllString(string(content), "provider")
		if page == notes {
			text = indentedBlock.ReplaceAllString(text, "```\n$1\n```")
		}
		found := commandsIn(text)
		if page == notes && len(found) < 3 {
			t.Errorf("%s has the commands %v", page, found)
		}
		for _, command := range found {
			checked++
			text := strings.Join(command.words, " ")
			if _, ok := results[text]; !ok {
				results[text] = parseCommand(t, command.words)
			}
			if err := results[text]; err != nil && (command.complete || !isIncomplete(err)) {
				t.Errorf("%s: xpkg %s: %v", filepath.Base(page), text, err)
			}
		}
	}
	if checked < 150 {
		t.Errorf("%d commands were found in the documents", checked)
	}
}

// documentedCommand is a command in a document.
type documentedCommand struct {
	words []string
	// complete is whether the command has all its arguments: text between backquotes often names a command without them.
	complete bool
}

var (
	inlineCommand = regexp.MustCompile("`xpkg ([^`]+)`")
	blockCommand  = regexp.MustCompile(`(?m)^(?:\$ )?(?:bin/)?(?:xpkg|kubectl crossplane) ((?:[^\n]*\\\n)*[^\n]*)$`)
	// templateValue is a value that Helm or Prometheus inserts, and indentedBlock a command in the notes of the chart.
	templateValue = regexp.MustCompile("{{ ?[^}]* ?}}")
	indentedBlock = regexp.MustCompile(`(?m)^  (\S.*)$`)
	codeBlock     = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```")
)

// commandsIn returns the commands in code blocks and between backquotes.
func commandsIn(document string) []documentedCommand {
	var out []documentedCommand
	for _, block := range codeBlock.FindAllStringSubmatch(document, -1) {
		if block[1] == "yaml" {
			continue
		}
		for _, m := range blockCommand.FindAllStringSubmatch(block[2], -1) {
			if block[1] == "console" && !strings.HasPrefix(m[0], "$ ") {
				continue // A line of output.
			}
			line, _, _ := strings.Cut(strings.ReplaceAll(m[1], "\\\n", " "), "   ")
			out = append(out, documentedCommand{shellWords(line), true})
		}
	}
	prose := codeBlock.ReplaceAllString(document, "")
	for _, m := range inlineCommand.FindAllStringSubmatch(prose, -1) {
		if words := shellWords(strings.ReplaceAll(m[1], "KIND", "provider")); !slices.Contains(words, "…") {
			out = append(out, documentedCommand{words, false})
		}
	}
	return out
}

// shellWords splits a command into words up to a pipe, a redirection or a comment. Quotes group words.
func shellWords(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		if strings.ContainsAny(m[:1], "|>#<&") || m == ";" {
			break
		}
		out = append(out, strings.Trim(m, `'"`))
	}
	return out
}

// parseCommand parses a command without running it. A parser keeps the values of a command, so each has its own.
func parseCommand(t *testing.T, words []string) error {
	t.Helper()
	parser, err := kong.New(
		grammarOf(words), kong.Name("xpkg"), kong.Exit(func(int) {}), kong.Writers(io.Discard, io.Discard),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(normalize(parser.Model, words))
	return err
}

// isIncomplete reports whether a command only lacks arguments or values.
func isIncomplete(err error) bool {
	message := err.Error()
	return strings.HasPrefix(message, "expected ") || strings.HasPrefix(message, "missing flags") ||
		strings.Contains(message, `but got "EOL"`) ||
		strings.HasSuffix(message, "no package is given")
}

// printed runs a command and returns its standard output.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), append([]string{"xpkg"}, args...), &terminal.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
	}); code != 0 {
		t.Fatalf("xpkg %s: exit code %d\n%s", strings.Join(args, " "), code, &errs)
	}
	return out.String()
}

// ambiguousKind matches a kubectl command that names a kind of package without the API group.
var ambiguousKind = regexp.MustCompile(
	"kubectl (?:get|describe|annotate|label|patch|delete|edit|wait|explain)(?: -[^ \n`]+(?: [^- \n`]+)?)* (?:providers?|configurations?|functions?)[ /`\n]",
)

// TestKubectlCommandsNameTheGroupOfPackages checks the documents and the messages: clusters have other resources with
// the names of the kinds of packages, such as provider.
func TestKubectlCommandsNameTheGroupOfPackages(t *testing.T) {
	for _, wrong := range []string{
		"kubectl annotate provider x", "kubectl get -o yaml functions\n", "kubectl delete provider/x",
	} {
		if !ambiguousKind.MatchString(wrong) {
			t.Errorf("%s is not found", wrong)
		}
	}
	checked := 0
	for _, root := range []string{
		"../../docs", "../../README.md", "../../internal", "../../pkg", "../../apis", "../../examples",
	} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			isText := strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
			if err != nil || d.IsDir() || !isText {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			checked++
			if found := ambiguousKind.FindString(string(content)); found != "" {
				t.Errorf("%s: %q names no API group, as in provider.pkg", path, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if checked < 100 {
		t.Errorf("%d files were found", checked)
	}
}
