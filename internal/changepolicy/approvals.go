package changepolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

// Facts are what approvals depend on.
type Facts struct {
	// Breaking reports that the change breaks the API of a kind, custom resources or other packages; Permissions that a
	// runtime gets more permissions, or webhooks for resources of others; Removal that a package is uninstalled, or
	// objects of one are deleted.
	Breaking, Permissions, Removal bool
	// Objects is the number of custom resources of the kinds that change.
	Objects int64
}

// Needs returns the number of people who must approve a change, and why, as nouns in a fixed order.
func Needs(p v1alpha1.ChangePolicySpec, f Facts) (people int32, reasons []string) {
	classes := []struct {
		class  v1alpha1.ChangeClass
		is     bool
		reason string
	}{
		{v1alpha1.BreakingChange, f.Breaking, "breaking changes"},
		{v1alpha1.PermissionsChange, f.Permissions, "more permissions"},
		{v1alpha1.RemovalChange, f.Removal, "removal"},
	}
	add := func(a v1alpha1.NeededApproval, reason string) {
		people = max(people, a.People, 1)
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, c := range classes {
		for _, a := range p.Approvals {
			if c.is && slices.Contains(a.For, c.class) {
				add(a, c.reason)
			}
		}
	}
	for _, a := range p.Approvals {
		switch {
		case a.Objects != nil && f.Objects > *a.Objects:
			add(a, fmt.Sprintf("more than %d custom resources", *a.Objects))
		case a.Objects == nil && len(a.For) == 0:
			add(a, "every change")
		}
	}
	return people, reasons
}

// People returns a number of people.
func People(n int32) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}

// Approve adds the approval of a plan by a user to approvals, and removes those of other plans by this user.
func Approve(approvals, digest, user string) string {
	lines := strings.Split(approvals, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		_, by, _ := strings.Cut(line, " ")
		return line == "" || by == user
	})
	return strings.Join(append(lines, digest+" "+user), "\n")
}

// Approvers returns the users who have approved the plan with a digest, without the creator of the transaction, in
// order. Approvals are the lines of the annotation.
func Approvers(approvals, digest, creator string) []string {
	return approvers(approvals, creator)[digest]
}

// ApprovesOther reports whether enough people have approved another plan than the one with a digest: the change may
// have other consequences now.
func ApprovesOther(approvals, digest, creator string, people int32) bool {
	for plan, by := range approvers(approvals, creator) {
		if plan != digest && len(by) >= int(people) {
			return true
		}
	}
	return false
}

// HasFormer reports whether other plans than the one with a digest are approved.
func HasFormer(approvals, digest string) bool { return ApprovesOther(approvals, digest, "", 1) }

// approvers returns the users who have approved plans, by digest.
func approvers(approvals, creator string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.SplitSeq(approvals, "\n") {
		plan, user, ok := strings.Cut(line, " ")
		if ok && user != "" && user != creator && !slices.Contains(out[plan], user) {
			out[plan] = append(out[plan], user)
			slices.Sort(out[plan])
		}
	}
	return out
}
