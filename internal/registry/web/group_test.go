package web_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
)

// ownedSource is a source with an owner of all API groups.
type ownedSource struct {
	web.Source
	owner web.Owner
}

// View implements [web.Source].
func (s ownedSource) View(r *http.Request) web.View { return ownedView{s.Source.View(r), s.owner} }

type ownedView struct {
	web.View
	owner web.Owner
}

// GroupOwner implements [web.View].
func (v ownedView) GroupOwner(context.Context, string) (web.Owner, error) { return v.owner, nil }

// TestThePageOfAGroupMarksThePackagesOfOthers names the owner of a group with kinds of two packages as a repository, as
// a prefix and as a publisher.
func TestThePageOfAGroupMarksThePackagesOfOthers(t *testing.T) {
	source, err := folder.New(webtest.Packages(t), webtest.Options())
	if err != nil {
		t.Fatal(err)
	}
	const boats, docks = webtest.Registry + "/acme/provider-boats", webtest.Registry + "/harbours/provider-docks"
	mark := regexp.MustCompile(`<li><a href="/p/([^"]+)">[^\n]*?</li>`)
	for _, test := range []struct {
		owner  web.Owner
		others []string
	}{
		{web.Owner{}, nil},
		{web.Owner{Publisher: boats, Repository: boats}, []string{docks}},
		{web.Owner{Publisher: "acme", Repository: webtest.Registry + "/acme"}, []string{docks}},
		{web.Owner{Publisher: "harbours", Repository: webtest.Registry + "/harbours"}, []string{boats}},
		{web.Owner{Publisher: "ac", Repository: webtest.Registry + "/ac"}, []string{boats, docks}},
		{web.Owner{Publisher: webtest.Publisher}, []string{docks}},
	} {
		h, err := web.New(ownedSource{source, test.owner}, web.Options{Name: "Packages"})
		if err != nil {
			t.Fatal(err)
		}
		var others []string
		for _, row := range mark.FindAllStringSubmatch(get(t, h, "/g/marine.acme.example", http.StatusOK).Body.String(), -1) {
			if strings.Contains(row[0], "not the owner") {
				others = append(others, row[1])
			}
		}
		if !slices.Equal(others, test.others) {
			t.Errorf("%+v: the page marks %q, want %q", test.owner, others, test.others)
		}
	}
}
