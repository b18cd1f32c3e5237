//go:build unix

package program_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/placeholder"
	"github.com/xpkg-dev/xpkg/internal/testing/session"
)

var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"refuse":   refuse,
	"advised":  advised,
	"exits":    exits,
	"formats":  formats,
	"awaits":   awaits,
	"objects":  objects,
	"only":     only,
	"expand":   session.Expand,
	"flip":     flip,
	"genuine":  genuine,
	"datahome": dataHome,

	"closeregistry": closeFirst,
}

// told matches the lines that a command may print before it fails: progress and warnings.
var told = regexp.MustCompile(
	`^(note: as in the last start: |installing|waiting for|trying again: |planning|checking|the plan cannot be computed here|deleting|starting|pushing|changed since the plan: |provider/|configuration/|function/)|: warning [A-Z]`,
)

// advice matches a command in the advice of an error.
var advice = regexp.MustCompile("`(xpkg [^`]+)`")

// advised WORD… runs the first command of the advice on standard error, with more words, as a user who copies it does.
// It must succeed.
func advised(ts *testscript.TestScript, neg bool, args []string) {
	found := advice.FindStringSubmatch(ts.ReadFile("stderr"))
	if neg || found == nil {
		ts.Fatalf("standard error has no command")
	}
	words := append(strings.Fields(found[1]), args...)
	ts.Check(ts.Exec(words[0], words[1:]...))
}

// refuse CODE EXIT COMMAND… runs a command that must fail with a code and its exit code. It prints
// nothing on standard output, and standard error ends with two lines: the failure and the fix.
func refuse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: refuse CODE EXIT COMMAND…")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	err = ts.Exec(args[2], args[3:]...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		ts.Fatalf("it succeeded")
	case !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case exit.ExitCode() != want:
		ts.Fatalf("exit code %d, want %d", exit.ExitCode(), want)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("standard output is not empty: %q", out)
	}
	if problem := checkRefusal(ts.ReadFile("stderr"), args[0]); problem != "" {
		ts.Fatalf("%s", problem)
	}
}

// exits CODE COMMAND… runs a command that ends with an exit code that is no failure, such as the
// exit code of a comparison with changes.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case err == nil:
		ts.Fatalf("it succeeded")
	case !errors.As(err, &exit):
		ts.Fatalf("%v", err)
	case exit.ExitCode() != want:
		ts.Fatalf("exit code %d, want %d", exit.ExitCode(), want)
	}
	if stderr := ts.ReadFile("stderr"); strings.Contains(stderr, "error: ") {
		ts.Fatalf("it says that it failed")
	}
}

// formats COMMAND… runs a command with -o json and with -o yaml. It must succeed, and print one document in the format.
func formats(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: formats COMMAND…")
	}
	for format, parse := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(raw []byte, into any) error { return yaml.UnmarshalStrict(raw, into) },
	} {
		ts.Check(ts.Exec(args[0], append(args[1:len(args):len(args)], "-o", format)...))
		var document any
		out := ts.ReadFile("stdout")
		err := parse([]byte(out), &document)
		if _, isText := document.(string); err != nil || isText || out == "" {
			ts.Fatalf("standard output is not %s: %q: %v", format, out, err)
		}
	}
}

// awaits PATTERN COMMAND… repeats a command, which reads a state that the manager reaches later, until its standard
// output matches a pattern, or with ! until it no longer does.
func awaits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: awaits PATTERN COMMAND…")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(limit); ; {
		ts.Check(ts.Exec(args[1], args[2:]...))
		switch {
		case pattern.MatchString(ts.ReadFile("stdout")) != neg:
			return
		case time.Now().After(end):
			ts.Fatalf("the output of %s did not change", strings.Join(args[1:], " "))
		}
	}
}

// checkRefusal returns the difference between the output of a failed command and the form of
// errors, or "".
func checkRefusal(stderr, code string) string {
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if len(lines) < 2 {
		return "less than two lines"
	}
	before, failed, advice := lines[:len(lines)-2], lines[len(lines)-2], lines[len(lines)-1]
	switch {
	case !strings.HasPrefix(failed, "error: "+code+": ") || strings.HasSuffix(failed, "."):
		return "the last line but one is not \"error: " + code + ": what failed\": " + failed
	case !strings.HasPrefix(advice, "  ") || !strings.HasSuffix(advice, "."):
		return "the last line is not an advice: " + advice
	case placeholder.Find(advice) != nil:
		return "the advice contains a placeholder: " + advice
	}
	for _, line := range before {
		if !told.MatchString(line) {
			return "there is more than the failure and the advice: " + line
		}
	}
	return ""
}

// objects KIND/NAME… checks that the last output, as JSON or YAML, is a List of packages with all
// fields, and that it contains these packages.
func objects(ts *testscript.TestScript, neg bool, args []string) {
	raw, err := yaml.YAMLToJSON([]byte(ts.ReadFile("stdout")))
	ts.Check(err)
	var list struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	strict(ts, raw, &list)
	if list.APIVersion != "v1" || list.Kind != "List" {
		ts.Fatalf("it is a %s %s and not a v1 List", list.APIVersion, list.Kind)
	}
	var found []string
	for _, item := range list.Items {
		var kind struct {
			APIVersion, Kind string // the keys differ in case only
		}
		ts.Check(json.Unmarshal(item, &kind))
		p := v1.NewPackage(kind.Kind)
		if p == nil || kind.APIVersion != v1.GroupVersion.String() {
			ts.Fatalf("%s %s is no package", kind.APIVersion, kind.Kind)
		}
		strict(ts, item, p)
		if p.GetUID() == "" || p.PackageSpec().Package == "" {
			ts.Fatalf("%s is not complete: %s", p.GetName(), item)
		}
		found = append(found, strings.ToLower(kind.Kind)+"/"+p.GetName())
	}
	for _, name := range args {
		if slices.Contains(found, name) == neg {
			ts.Fatalf("among %q: %s", found, name)
		}
	}
}

// strict decodes a value that must have no unknown and no double fields.
func strict(ts *testscript.TestScript, raw []byte, into any) {
	problems, err := kjson.UnmarshalStrict(raw, into)
	ts.Check(errors.Join(append(problems, err)...))
}

// only FOLDER [NAME…] checks that a folder has exactly these entries.
func only(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: only FOLDER [NAME…]")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := slices.Sorted(slices.Values(args[1:]))
	if !slices.Equal(names, want) {
		ts.Fatalf("%s has %q, want %q", args[0], names, want)
	}
}

// genuine FOLDER checks that every file below the folder whose name is a digest has this digest.
func genuine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: genuine FOLDER")
	}
	checked := 0
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !digestName.MatchString(d.Name()) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		checked++
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != d.Name() {
			return fmt.Errorf("%s has other content than its name says", path)
		}
		return nil
	}))
	if checked == 0 {
		ts.Fatalf("%s has no blobs", args[0])
	}
}

var digestName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// datahome sets a data folder for the user of the script that the reaper knows.
func dataHome(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: datahome")
	}
	shop, err := build()
	ts.Check(err)
	dir, err := os.MkdirTemp(shop, homePrefix)
	ts.Check(err)
	ts.Setenv("XDG_DATA_HOME", dir)
}
