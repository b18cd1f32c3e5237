package errcode

import (
	"errors"
	"strings"
	"testing"
)

func TestHideCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"user:pw@r.example.org/a/b:v1":                     "***@r.example.org/a/b:v1",
		"https://user:pw@r.example.org":                    "https://***@r.example.org",
		"AWS:a+b/c==@1.dkr.ecr.example.org/a:v1":           "***@1.dkr.ecr.example.org/a:v1",
		"user:p@w@r.example.org/a":                         "***@r.example.org/a",
		`cannot read "user:pw@h/a:v1": it is "user:pw@h"`:  `cannot read "***@h/a:v1": it is "***@h"`,
		"--registry=user:pw@h/a":                           "--registry=***@h/a",
		"user:pw@[::1]:5000/a":                             "***@[::1]:5000/a",
		"h:5000/a/b:v1@sha256:0123":                        "h:5000/a/b:v1@sha256:0123",
		"alpine:3@sha256:0123":                             "alpine:3@sha256:0123",
		"h:5000/a/b@v1.0.0, and h/a/b@>=v1":                "h:5000/a/b@v1.0.0, and h/a/b@>=v1",
		"Jane <jane@example.org>, mailto:jane@example.org": "Jane <jane@example.org>, mailto:jane@example.org",
		"github.com/a/b@v1: module needs x@y":              "github.com/a/b@v1: module needs x@y",
		"no credentials":                                   "no credentials",
	} {
		if got := HideCredentials(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

// An error that reaches a user, a condition, an event or a log contains no credentials, wherever they are in it.
func TestErrorsContainNoCredentials(t *testing.T) {
	const ref = "user:hunter2@r.example.org/a/b:v1"
	code := Code{Name: "X", Class: Invalid, Fix: "Fix."}
	for _, err := range []error{
		code.New(nil, "cannot read %q", ref), code.New(errors.New("it is "+ref), "cannot read it"),
		code.New(nil, "x").WithDo("Run `xpkg pull %s`.", ref), errors.New("open " + ref),
	} {
		if m := Message(err); strings.Contains(m, "hunter2") {
			t.Errorf("the message is %s", m)
		}
	}
}
