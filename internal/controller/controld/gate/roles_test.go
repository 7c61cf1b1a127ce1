package gate

import (
	"testing"

	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

func TestOnlyMethodsOfTheAPIAreForReaders(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]circle{
		apiv1connect.AdminGetStatusProcedure:            allMembers,
		apiv1connect.AdminExportProcedure:               allMembers,
		apiv1connect.AdminApplyProcedure:                onlyAdmins,
		apiv1connect.AdminBackupStateProcedure:          onlyAdmins,
		apiv1connect.AdminAddControllerProcedure:        onlyAdmins,
		apiv1connect.AdminUpdateAccessProcedure:         onlyAdmins,
		apiv1connect.AdminSetWeightsProcedure:           onlyAdmins,
		apiv1connect.SwitchesListSwitchesProcedure:      allMembers,
		apiv1connect.SwitchesAddSwitchFlowProcedure:     onlyAdmins,
		apiv1connect.SwitchesRemoveSwitchFlowProcedure:  onlyAdmins,
		apiv1connect.TrustIssueProcedure:                onlyAdmins,
		apiv1connect.TrustListTokensProcedure:           onlyAdmins,
		apiv1connect.TrustListMembersProcedure:          allMembers,
		apiv1connect.AgentResolveProcedure:              hostsOrRouter,
		"/metrics":                                      allMembers,
		"/debug/pprof/heap":                             onlyAdmins,
		"/other/GetAll":                                 onlyAdmins,
		"/debug/Lists":                                  onlyAdmins,
		"/":                                             onlyAdmins,
		"/scaffold.v2.Admin/GetStatus":                  onlyAdmins,
		"/" + apiv1connect.AdminName + "/RemoveService": onlyAdmins,
	} {
		if got := circleOf(path); got != want {
			t.Errorf("%s is for circle %d, want %d", path, got, want)
		}
	}
}
