package runtime

import (
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func TestParseChoice(t *testing.T) {
	cases := map[string]struct {
		in                         string
		provider, hello, functions Name
		invalid                    bool
	}{
		"One": {in: "External", provider: External, hello: External, functions: External},
		"Upstream": {
			in: "Provider=External;Function=Deployment", provider: External, hello: External, functions: Deployment,
		},
		"Part":        {in: "Provider=External", provider: External, hello: External, functions: Process},
		"OnePackage":  {in: "Provider=External;Provider/hello=None", provider: External, hello: None, functions: Process},
		"Spaces":      {in: " Provider = None ; ", provider: None, hello: None, functions: Process},
		"Unknown":     {in: "Docker", invalid: true},
		"UnknownKind": {in: "Configuration=None", invalid: true},
		"NoName":      {in: "Provider/=None", invalid: true},
		"Twice":       {in: "Provider=None;Provider=External", invalid: true},
		"NoPair":      {in: "Provider=None;Function", invalid: true},
		"Empty":       {in: "", invalid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := ParseChoice(tc.in, Process)
			if (err != nil) != tc.invalid {
				t.Fatalf("error: %v", err)
			}
			if tc.invalid {
				return
			}
			for _, is := range []struct {
				kind, name string
				want       Name
			}{{v1.ProviderKind, "x", tc.provider}, {v1.ProviderKind, "hello", tc.hello},
				{v1.FunctionKind, "hello", tc.functions}, {v1.ConfigurationKind, "hello", None}} {
				got := c.Of(is.kind, is.name)
				if got != is.want {
					t.Errorf("%s %s: %s, want %s", is.kind, is.name, got, is.want)
				}
				if is.kind != v1.ConfigurationKind && !c.Uses(got) {
					t.Errorf("%s is chosen and not in use", got)
				}
			}
		})
	}
	if got := (Choice{}).Of(v1.ProviderKind, "x"); got != None {
		t.Errorf("nothing chosen gives %s", got)
	}
}

func FuzzParseChoice(f *testing.F) {
	f.Add("Provider=External;Function=Deployment")
	f.Add("Process")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseChoice(s, None)
		if err != nil {
			return
		}
		if n := c.Of(v1.ProviderKind, "x"); !c.Uses(n) {
			t.Errorf("%q: %s is chosen and not in use", s, n)
		}
	})
}

// A choice survives its announcement in the Lock.
func TestChoiceIsParsedFromItsText(t *testing.T) {
	for _, text := range []string{
		"Process", "Deployment", "None", "Provider=External", "Provider=External;Function/a=Process", "Provider/b=None",
	} {
		want, err := ParseChoice(text, Deployment)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseChoice(want.String(), None)
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		for _, kind := range []string{"Provider", "Function", "Configuration"} {
			for _, name := range []string{"a", "b"} {
				if got.Of(kind, name) != want.Of(kind, name) {
					t.Errorf("%s as %s: %s/%s runs as %s, want %s", text, want, kind, name, got.Of(kind, name), want.Of(kind, name))
				}
			}
		}
	}
}

// The advice names the commands with which a package is installed without its runtime, and the choices for all other
// packages stay the same.
func TestAdviceForAPackageWithoutAProgramKeepsOtherRuntimes(t *testing.T) {
	for text, want := range map[string][]string{
		"Process": {"--detach --package-runtime=Provider/hello=None`"},
		"Deployment": {
			"'--package-runtime=Function=Deployment;Provider=Deployment;Provider/hello=None'",
			"--manager-arg=--package-runtime=Provider/hello=None",
		},
		"Provider/a=None":                    {"'--package-runtime=Provider/a=None;Provider/hello=None'"},
		"Provider/hello=Process":             {"--detach --package-runtime=Provider/hello=None`"},
		"Provider=Process;Function=External": {"'--package-runtime=Function=External;Provider=Process;Provider/hello=None'"},
	} {
		c, err := ParseChoice(text, Process)
		if err != nil {
			t.Fatal(err)
		}
		failed := c.AdviseWithoutRuntime(ErrNoProgram.New(nil, "no program"), v1.ProviderKind, "hello")
		advice := errcode.From(failed).Do
		if isCluster := strings.Contains(advice, "xpkg bootstrap"); isCluster != (text == "Deployment") {
			t.Errorf("%s: the advice is %q; a manager with processes runs on this machine", text, advice)
		}
		for _, part := range want {
			if !strings.Contains(advice, part) {
				t.Errorf("%s: the advice is %q, want %q in it", text, advice, part)
			}
		}
	}
	other := ErrRuntimeConfig.New(nil, "absent")
	if got := Everywhere(Process).AdviseWithoutRuntime(other, v1.ProviderKind, "hello"); errcode.From(got).
		Do != ErrRuntimeConfig.Fix {
		t.Errorf("the advice of another code is %q", errcode.From(got).Do)
	}
}
