package failure

import (
	"errors"
	"fmt"
	"testing"
)

var errTest = Register(Code{Name: "TestOnly", Class: NotFound, Cause: "A test asked for it.", Fix: "Do nothing."})

func TestError(t *testing.T) {
	root := errors.New("no such file")
	err := errTest.New(root, "cannot read %s", "x.yaml")
	if got, want := err.Error(), "cannot read x.yaml: no such file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, root) || !errTest.Is(fmt.Errorf("wrapped: %w", err)) || Unknown.Is(err) {
		t.Error("a failure is found by its code and by its cause")
	}
	if got, want := Message(err), "TestOnly: cannot read x.yaml: no such file. Do nothing."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Message(err.WithDo("Look at %s.", "it")), "TestOnly: cannot read x.yaml: no such file. Look at it."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFromKeepsWhatWasWrapped(t *testing.T) {
	inner := errTest.New(nil, "cannot read x.yaml")
	f := From(fmt.Errorf("build: %w", inner))
	if got, want := f.Error(), "build: cannot read x.yaml"; got != want || f.Code.Name != errTest.Name || f.Do != inner.Do {
		t.Errorf("got %q with code %s, want %q with code %s", got, f.Code.Name, want, errTest.Name)
	}
	if From(inner) != inner {
		t.Error("a failure is itself")
	}
	if f := From(errors.New("boom")); f.Code.Name != Unknown.Name || f.Error() != "boom" {
		t.Errorf("an error that nobody classified became %v", f)
	}
}

func TestRegisterRefusesASecondMeaning(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a code was registered twice")
		}
	}()
	Register(Code{Name: errTest.Name})
}

func TestClassesHaveTheirOwnExitCodes(t *testing.T) {
	seen := map[int]string{0: "success", 2: "changes"}
	for _, c := range Classes() {
		if other, taken := seen[c.Exit]; taken {
			t.Errorf("%s and %s end with %d", c.Name, other, c.Exit)
		}
		seen[c.Exit] = c.Name
		if c.Name == "" || c.Meaning == "" {
			t.Errorf("class %+v is not documented", c)
		}
	}
}
