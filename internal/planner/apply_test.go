package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A package shows whether a plan has been applied.
func TestApplied(t *testing.T) {
	live := func(change func(v1.Package)) v1.Package {
		p, err := whole(t).Wanted()
		if err != nil {
			t.Fatal(err)
		}
		p.SetUID(whole(t).Preconditions.UID)
		// The API server omits false values.
		p.PackageSpec().SkipDependencyResolution = false
		if change != nil {
			change(p)
		}
		return p
	}
	deleting := func(p v1.Package) { p.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) }
	for name, tc := range map[string]struct {
		op   Operation
		live v1.Package
		want bool
	}{
		"install, and it is there":     {Install, live(nil), true},
		"install, and it is not there": {Install, nil, false},
		"install, and another one is there": {
			Install, live(func(p v1.Package) { p.PackageSpec().Package = "registry.example.com/rafts:v1" }), false,
		},
		"install, of any UID":  {Install, live(func(p v1.Package) { p.SetUID("new") }), true},
		"update, and it is so": {Update, live(nil), true},
		"update, and a flag differs": {
			Update, live(func(p v1.Package) { p.PackageSpec().SkipDependencyResolution = true }), false,
		},
		"update, and it was made again": {Update, live(func(p v1.Package) { p.SetUID("new") }), false},
		"update, and it is gone":        {Update, nil, false},
		"uninstall, and it is gone":     {Uninstall, nil, true},
		"uninstall, and it goes":        {Uninstall, live(deleting), true},
		"uninstall, and it is there":    {Uninstall, live(nil), false},
		"uninstall, and another one of the name goes": {Uninstall, live(func(p v1.Package) {
			p.SetUID("new")
			deleting(p)
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := whole(t)
			p.Operation = tc.op
			if got, err := p.IsApplied(tc.live); got != tc.want || err != nil {
				t.Errorf("got %v and %v", got, err)
			}
		})
	}
}

// A plan that turns a dependency into a user's package has been applied once the
// auto-installed annotation is gone.
func TestAppliedAdoption(t *testing.T) {
	p := whole(t)
	p.Operation, p.Adopts = Update, true
	live, err := p.Wanted()
	if err != nil {
		t.Fatal(err)
	}
	live.SetUID(p.Preconditions.UID)
	for _, made := range []bool{true, false} {
		live.SetLabels(map[string]string{graph.LabelAutoInstalled: fmt.Sprint(made)})
		if got, err := p.IsApplied(live); got == made || err != nil {
			t.Errorf("made for others is %v, and the plan is carried out: %v %v", made, got, err)
		}
	}
}

// A plan that only consents to the adoption of objects writes the package, and has been applied once the package has
// the consent.
func TestConsentToAdoptionIsWritten(t *testing.T) {
	p := whole(t)
	p.Operation, p.Adopts, p.Webhooks, p.Preconditions.Spec = Update, false, nil, specIn(p.Package.Object)
	p.Adoptions = nil
	if p.WritesPackage() {
		t.Fatal("a plan without changes writes the package")
	}
	p.Adoptions = []string{"CustomResourceDefinition/rafts.test"}
	if !p.WritesPackage() {
		t.Error("the consent is not written")
	}
	live, err := p.Wanted()
	if err != nil {
		t.Fatal(err)
	}
	live.SetUID(p.Preconditions.UID)
	live.SetAnnotations(nil)
	if applied, err := p.IsApplied(live); applied || err != nil {
		t.Errorf("without the consent the plan is applied: %v, %v", applied, err)
	}
	revision.AllowAdoption(live, p.Adoptions)
	if applied, err := p.IsApplied(live); !applied || err != nil {
		t.Errorf("with the consent the plan is not applied: %v, %v", applied, err)
	}
}

func TestHolds(t *testing.T) {
	p := whole(t)
	live := v1.NewPackage(v1.ProviderKind)
	live.SetUID(p.Preconditions.UID)
	live.SetGeneration(p.Preconditions.Generation)
	live.SetResourceVersion("any")
	if moved := p.CheckPackage(live); moved != nil {
		t.Error(moved)
	}
	live.SetGeneration(p.Preconditions.Generation + 1)
	if moved := p.CheckPackage(live); len(moved) != 1 {
		t.Error(moved)
	}
	p.Preconditions.Kinds = activation.Wish(nil)
	live.SetAnnotations(map[string]string{activation.AnnotationKinds: "used"}) // By another command at the same time.
	if moved := p.CheckPackage(live); len(moved) != 2 {
		t.Error(moved)
	}
	live.SetUID("new")
	if moved := p.CheckPackage(live); len(moved) != 3 {
		t.Error(moved)
	}
	if moved := p.CheckPackage(nil); len(moved) != 1 || moved[0].Is != absent {
		t.Error(moved)
	}
}

func TestRefused(t *testing.T) {
	p := whole(t)
	// The first finding is the one that the manager reports.
	if err := p.RefusalError(); !errors.Is(err, rbac.ErrPermissionDenied) || errcode.From(err).Do != "Change the policy." {
		t.Error(err)
	}
	p.Findings = p.Findings[1:]
	if err := p.RefusalError(); !errors.Is(err, xpkg.ErrIncompatible) {
		t.Error(err)
	}
	p.Findings = nil
	if err := p.RefusalError(); !errors.Is(err, apply.ErrRefused) {
		t.Error(err)
	}
	// An object of another package is released by an update of both.
	p.Operation, p.Package.To = Update, &Version{Reference: "registry.example.com/boats:v2.0.0"}
	p.Objects.Refusals = []plan.Refusal{{
		Holder: "Provider/yard", Reason: "CustomResourceDefinition boats.acme.test belongs to Provider/yard",
	}}
	command := "`xpkg update provider/yard " + p.Package.Short() + "@v2.0.0`"
	if err := p.RefusalError(); !errors.Is(err, apply.ErrRefused) || !strings.Contains(errcode.From(err).Do, command) {
		t.Errorf("got %v (%s), want %s", err, errcode.From(err).Do, command)
	}
	p.Operation = Install
	// A package of the same kind may be the same one from another repository.
	for holder, moved := range map[string]bool{"Provider/yard": true, "Configuration/yard": false} {
		p.Objects.Refusals[0].Holder = holder
		do := errcode.From(p.RefusalError()).Do
		if !strings.Contains(do, "`xpkg update "+strings.ToLower(holder)+"`") ||
			strings.Contains(do, "`xpkg update provider/yard registry.example.com/boats:v2.0.0`") != moved {
			t.Errorf("%s: %s", holder, do)
		}
	}
	p.Objects.Refusals = []plan.Refusal{{
		Cause: plan.Deleting, Reason: "CustomResourceDefinition boats.acme.test is being deleted",
	}}
	if err := p.RefusalError(); !errors.Is(err, apply.ErrDeleting) {
		t.Error(err)
	}
	p.Objects.Refusals = nil
	if err := p.RefusalError(); err != nil {
		t.Error(err)
	}
}
