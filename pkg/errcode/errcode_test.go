package errcode_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

var errTest = errcode.Code{Name: "TestOnly", Class: errcode.NotFound, Cause: "A test asked for it.", Fix: "Do nothing."}

func TestErrorHasCodeCauseAndAdvice(t *testing.T) {
	root := errors.New("no such file")
	err := errTest.New(root, "cannot read %s", "x.yaml")
	if got, want := err.Error(), "cannot read x.yaml: no such file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, root) || !errors.Is(fmt.Errorf("wrapped: %w", err), errTest) || errors.Is(err, errcode.Unknown) {
		t.Error("errors.Is does not find the error by its code and by its cause")
	}
	if got, want := errcode.Message(err), "TestOnly: cannot read x.yaml: no such file. Do nothing."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := errcode.Message(err.WithDo(
		"Look at %s.", "it",
	)), "TestOnly: cannot read x.yaml: no such file. Look at it."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Errors are shared, for example by concurrent callers of one read.
func TestAdviceIsAddedToACopy(t *testing.T) {
	shared := errTest.New(nil, "cannot read x.yaml")
	for range 3 {
		f := errcode.From(shared)
		if got, want := f.Also("And this.").Do, "Do nothing. And this."; got != want {
			t.Errorf("got the advice %q, want %q", got, want)
		}
	}
}

func TestFromKeepsWrappingText(t *testing.T) {
	inner := errTest.New(nil, "cannot read x.yaml")
	f := errcode.From(fmt.Errorf("build: %w", inner))
	if got, want := f.Error(), "build: cannot read x.yaml"; got != want || f.Code.Name != errTest.Name ||
		f.Do != inner.Do {
		t.Errorf("got %q with code %s, want %q with code %s", got, f.Code.Name, want, errTest.Name)
	}
	if errcode.From(inner) != inner {
		t.Error("From did not return an *Error unchanged")
	}
	if f := errcode.From(errors.New("boom")); f.Code.Name != errcode.Unknown.Name || f.Error() != "boom" {
		t.Errorf("an unclassified error became %v", f)
	}
}

func TestIsOfContent(t *testing.T) {
	for _, c := range errcode.Classes() {
		err := fmt.Errorf("read: %w", errcode.Code{Name: "TestOnly", Class: c}.New(errors.New("boom"), "cannot read x.yaml"))
		want := c == errcode.Invalid || c == errcode.Limit || c == errcode.Unsupported
		if got := errcode.IsOfContent(err); got != want {
			t.Errorf("an error of class %s: %t, want %t", c.Name, got, want)
		}
	}
	if errcode.IsOfContent(nil) || errcode.IsOfContent(errors.New("boom")) {
		t.Error("no error, or one without a code, is an error of the content")
	}
}

// hardening: L8
func TestExitCodesAreDistinct(t *testing.T) {
	seen := map[int]string{0: "success", 2: "changes"}
	for _, c := range errcode.Classes() {
		if other, taken := seen[c.Exit]; taken {
			t.Errorf("%s and %s share the exit code %d", c.Name, other, c.Exit)
		}
		seen[c.Exit] = c.Name
		if c.Name == "" || c.Meaning == "" {
			t.Errorf("class %+v is not documented", c)
		}
		if errcode.ClassNamed(c.Name) != c {
			t.Errorf("ClassNamed(%q) does not return the class", c.Name)
		}
	}
}

func ExampleCode_New() {
	var ErrTagNotFound = errcode.Code{
		Name: "TagNotFound", Class: errcode.NotFound,
		Cause: "The repository does not contain the tag.",
		Fix:   "Check the tag.",
	}
	err := ErrTagNotFound.New(nil, "resolve %s", "example.org/provider:v9")
	wrapped := fmt.Errorf("install: %w", err)
	fmt.Println(errors.Is(wrapped, ErrTagNotFound))
	fmt.Println(errcode.Message(wrapped))
	// Output:
	// true
	// TagNotFound: install: resolve example.org/provider:v9. Check the tag.
}

// Further advice is a sentence after the advice that an error has, and the error stays as it is.
func TestAlso(t *testing.T) {
	shared := errcode.Code{Name: "Test", Fix: "Retry."}.New(nil, "it failed")
	if got := shared.Also("See %s.", "it"); got.Do != "Retry. See it." || shared.Do != "Retry." {
		t.Errorf("the advice is %q, and that of the former error %q", got.Do, shared.Do)
	}
	if got := shared.WithDo("").Also("Only 100%%."); got.Do != "Only 100%." {
		t.Errorf("the advice is %q", got.Do)
	}
}
