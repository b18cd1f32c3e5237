package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/examples/provider-hello/api/v1alpha1"
)

func TestGreet(t *testing.T) {
	dots := "..."
	none := ""
	cases := map[string]struct {
		spec    v1alpha1.GreetingSpec
		config  *v1alpha1.ProviderConfig
		message string
		reason  string
	}{
		"english":        {v1alpha1.GreetingSpec{Name: "world", Language: "en"}, nil, "Hello, world!", reasonAvailable},
		"german":         {v1alpha1.GreetingSpec{Name: "Welt", Language: "de"}, nil, "Hallo, Welt!", reasonAvailable},
		"no language":    {v1alpha1.GreetingSpec{Name: "world"}, nil, "Hello, world!", reasonAvailable},
		"other language": {v1alpha1.GreetingSpec{Name: "x", Language: "xx"}, nil, "", reasonUnknownLanguage},
		"punctuation":    {v1alpha1.GreetingSpec{Name: "world"}, punctuated(&dots), "Hello, world...", reasonAvailable},
		"no punctuation": {v1alpha1.GreetingSpec{Name: "world"}, punctuated(&none), "Hello, world", reasonAvailable},
		"empty config":   {v1alpha1.GreetingSpec{Name: "world"}, punctuated(nil), "Hello, world!", reasonAvailable},
		"missing config": {
			v1alpha1.GreetingSpec{Name: "world", ProviderConfigRef: &v1alpha1.ProviderConfigReference{Name: "x"}}, nil, "",
			reasonNoProviderConfig,
		},
		"existing config": {
			v1alpha1.GreetingSpec{Name: "world", ProviderConfigRef: &v1alpha1.ProviderConfigReference{Name: "x"}},
			punctuated(&dots), "Hello, world...", reasonAvailable,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			message, ready := greet(c.spec, c.config)
			if message != c.message || ready.Reason != c.reason {
				t.Errorf("%q, %s; want %q, %s", message, ready.Reason, c.message, c.reason)
			}
			if (ready.Status == metav1.ConditionTrue) != (c.message != "") {
				t.Errorf("ready is %s with the message %q", ready.Status, message)
			}
		})
	}
}

// A status that was observed once needs no second write.
func TestObserveSettles(t *testing.T) {
	g := &v1alpha1.Greeting{Spec: v1alpha1.GreetingSpec{Name: "world"}}
	g.Generation = 3
	first := observe(g, nil)
	if got := first.Conditions[0]; got.Type != typeReady || got.ObservedGeneration != 3 {
		t.Errorf("%+v", got)
	}
	if len(g.Status.Conditions) != 0 {
		t.Error("observe changed its argument")
	}
	g.Status = first
	if second := observe(g, nil); !equality.Semantic.DeepEqual(first, second) {
		t.Errorf("first %+v, then %+v", first, second)
	}
}

func punctuated(p *string) *v1alpha1.ProviderConfig {
	return &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Punctuation: p}}
}
