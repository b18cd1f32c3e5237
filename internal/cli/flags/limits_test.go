package flags

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// limitFlagNames returns the flags of limitFlags.
func limitFlagNames(t *testing.T) []string {
	t.Helper()
	parser, err := kong.New(&LimitFlags{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range parser.Model.Flags {
		if f.Name != "help" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Every flag that a message about a limit names must be there.
func TestLimitFlagsExist(t *testing.T) {
	var limits xpkg.Limits
	var want []string
	for _, f := range limits.Fields() {
		want = append(want, f.Name)
	}
	flag := regexp.MustCompile(`--(max-[a-z-]+[a-z])`)
	files := 0
	err := filepath.WalkDir(filepath.Join("..", "..", "..", "pkg", "oci"),
		func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			for _, m := range flag.FindAllStringSubmatch(string(text), -1) {
				want = append(want, m[1])
			}
			return nil
		})
	if err != nil || files == 0 {
		t.Fatalf("no source of package oci (%v)", err)
	}
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), limitFlagNames(t)); diff != "" {
		t.Errorf("flags that messages name (-), and flags that there are (+):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(LimitDefaults())), limitFlagNames(t)); diff != "" {
		t.Errorf("flags with a default (-), and flags that there are (+):\n%s", diff)
	}
}

// Every flag reaches the limit of its name.
func TestLimitFlagsReachTheReaders(t *testing.T) {
	var flags LimitFlags
	v := reflect.ValueOf(&flags).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(int64(1000 + i))
	}
	for _, got := range []reflect.Value{reflect.ValueOf(flags.ImageLimits()), reflect.ValueOf(flags.StreamLimits())} {
		seen := map[int64]bool{}
		for i := range got.NumField() {
			n := got.Field(i).Int()
			if n < 1000 || seen[n] {
				t.Errorf("%s of %s is %d", got.Type().Field(i).Name, got.Type(), n)
			}
			seen[n] = true
		}
	}
	stream := flags.StreamLimits()
	for _, f := range stream.Fields() {
		field := strings.NewReplacer("-", "").Replace(f.Name)
		want := v.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, field) })
		if !want.IsValid() || int64(*f.Value) != want.Int() {
			t.Errorf("--%s does not reach its limit", f.Name)
		}
	}
	if got := (LimitFlags{MaxPackageSize: 5}).StreamLimits().StreamBytes; got != 5 {
		t.Errorf("--max-package-size lets the reader of the stream stop at %d", got)
	}
	if got := (LimitFlags{}).ImageLimits(); got != (oci.Limits{}) {
		t.Errorf("no flags are %+v", got)
	}
}

func TestAmount(t *testing.T) {
	for text, want := range map[string]Amount{
		"1": 1, "4096": 4096, "2KiB": 2048, "64MiB": 64 << 20, "1 GiB": 1 << 30, "3Mi": 3 << 20,
		"": -1, "0": -1, "-1": -1, "1.5MiB": -1, "1MB": -1, "99999999999GiB": -1, "KiB": -1,
	} {
		var got Amount
		if err := got.UnmarshalText([]byte(text)); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
}
