package inventory

import (
	"fmt"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Target is a package in the command line of an update.
type Target struct {
	// Name is the installed package. It is empty if only the reference selects the package.
	Name Name
	// Kind is the kind before a reference without a name, or empty.
	Kind string
	// Ref is the version to update to: a tag, a digest or a reference. Empty means the newest compatible version.
	Ref string
}

// ParseTargets parses the arguments of an update:
//
//	NAME... with or without a kind and @VERSION     each package
//	NAME VERSION                                    one package to a version
//	REF... or KIND/REF...                           the package of the repository of each reference
//	REF NAME or KIND/REF NAME                       a package by its name
//
// The second of two arguments is a package if the function installed reports that its name is installed, or if it has a
// kind, and otherwise a version.
func ParseTargets(words []string, installed func(Name) bool) ([]Target, error) {
	var out []Target
	for _, word := range words {
		t, err := parseTarget(word)
		if len(words) == 2 && len(out) == 1 && out[0].takes(t, err, installed) {
			return []Target{out[0].with(word)}, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// takes reports whether the word after a target belongs to it. The word was parsed as second, unless err is set.
func (t Target) takes(second Target, err error, installed func(Name) bool) bool {
	switch {
	case t.Name == "":
		return err == nil && second.Name != "" && second.Ref == ""
	case t.Ref != "":
		return false
	case err != nil, second.Name == "":
		return true
	}
	kind, _, _ := second.Name.Split()
	return kind == "" && !installed(second.Name)
}

// with returns a target with the word that belongs to it: the name after a reference, or the version after a name.
func (t Target) with(word string) Target {
	if t.Name != "" {
		t.Ref = word
		return t
	}
	if t.Kind != "" && !strings.Contains(word, "/") {
		word = v1.ObjectName(t.Kind, word)
	}
	return Target{Name: Name(word), Ref: t.Ref}
}

// parseTarget parses one word. Names of packages contain neither ":" nor "/", so a reference is recognized by them.
func parseTarget(word string) (Target, error) {
	if IsObjectName(Name(word)) {
		return Target{}, Name(word).Validate()
	}
	kind, rest := "", word
	if before, after, ok := strings.Cut(word, "/"); ok && KindNamed(before) != "" {
		kind, rest = KindNamed(before), after
	}
	name, version, versioned := strings.Cut(rest, "@")
	if strings.ContainsAny(name, "/:") {
		return Target{Kind: kind, Ref: rest}, nil
	}
	if versioned && version == "" {
		return Target{}, fmt.Errorf("the version after %s is missing", word)
	}
	t := Target{Name: Name(strings.TrimSuffix(word, "@"+version)), Ref: version}
	if !versioned {
		t.Name = Name(word)
	}
	return t, t.Name.Validate()
}
