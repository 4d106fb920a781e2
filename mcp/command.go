package mcp

import (
	"strings"

	"tmux-mcpd/state"
)

// commandTools are the tools that show what people run in shells that mark it.
func commandTools() []*tool {
	row := func(name, title, doc string, params []param, out schema, classes ...string) tool {
		return tool{
			name: name, title: title, toolset: inspect, doc: doc, params: params, output: out,
			reach: reachNone, effects: []string{effectObserve}, classes: classes,
		}
	}
	return []*tool{
		define(row("list_commands", "List commands",
			"Lists the commands that were run at the shell of a pane, by anybody, oldest first: command line, exit status, times. "+
				"The shell must mark them (OSC 133); hint says how to make it. They are known from the first use of the pane here on. "+
				"What a program prints can pretend to be a command; runs of run_shell_command carry their runId.",
			[]param{
				paneParam(true),
				{name: "maxEntries", kind: kindInteger, positive: true, doc: "Return at most this many, the newest. Default 200."},
			}, output(map[string]schema{
				"commands": arrayOut(commandOut()), "complete": booleanOut(), "omittedEntries": countOut(),
				"gap":       gapOut().with("description", "The newest place where output was lost, and commands may be missing."),
				"hint":      orNull(stringOut()).with("description", "What to do if commands are missing because the shell does not mark them."),
				"marksSeen": booleanOut().with("description", "The shell of the pane has printed such marks since."),
				"since":     stringOut().with("description", "What began before is not known."),
			}), classTerminal, classMetadata), listCommands),
		define(row("get_command_output", "Read the output of a command",
			"Shows one command of list_commands and what it printed, without prompts and screens: by default the last one that "+
				"has ended. The newest part of the output, or with a cursor what follows it, oldest first.",
			[]param{
				paneParam(true),
				{name: "commandId", max: 64, doc: "The id of a command; list_commands shows them. Default: the newest that has ended."},
				{
					name: "cursor", pattern: state.CursorPattern, match: isCursor, want: "a cursor",
					doc: "Go on from here: the cursor of the command or of an earlier answer. Default: the newest part of all output.",
				},
				maxLinesParam(),
			}, output(map[string]schema{
				"command":       commandOut(),
				"cursor":        orNull(patternOut(state.CursorPattern)).with("description", "Pass it to the next call to go on."),
				"droppedLines":  integerOut(),
				"missedBytes":   integerOut().with("description", "Bytes of the output that are not kept any more."),
				"more":          booleanOut().with("description", "There is more after cursor already."),
				"omittedBytes":  integerOut(),
				"output":        stringOut(),
				"returnedBytes": integerOut(),
			}), classTerminal, classMetadata), getCommandOutput),
	}
}

func commandOut() schema {
	return objectOut(map[string]schema{
		"commandId": stringOut(),
		"commandLine": orNull(stringOut()).with("description",
			"As the shell told it, or as the screen showed it; null if neither is known."),
		"cursor":         orNull(patternOut(state.CursorPattern)).with("description", "Where its output begins."),
		"durationMs":     orNull(integerOut()),
		"endedAt":        orNull(stringOut()),
		"exitStatus":     orNull(integerOut()).with("description", "null if the shell did not tell it."),
		"outputComplete": booleanOut().with("description", "It has ended, and all of its output is kept."),
		"runId":          orNull(stringOut()).with("description", "The run of run_shell_command that it is."),
		"startedAt":      orNull(stringOut()),
		"state": enumOut(string(state.CommandRunning), string(state.CommandCompleted), string(state.CommandPaneDied),
			string(state.CommandUnknown)).with("description",
			"unknown: another prompt came before its end was told, such as that of a shell it started."),
	})
}

// markHint says how to make a pane's shell mark its commands. program is what
// runs in the pane.
func markHint(program string, l *state.CommandList) *string {
	var hint string
	switch {
	case l.Starts || len(l.Commands) > 0:
		return nil
	case l.Marked:
		hint = "The shell marks its prompts, but no start of a command has been seen since: commands are listed once it prints ESC ] 133 ; C BEL before each."
	default:
		hint = "No OSC 133 mark of a shell has been seen since. If the shell has integration, the next command is listed. If not, put this into its configuration, or type it"
		shells := []state.Shell{state.ShellBash, state.ShellZsh, state.ShellFish}
		for _, s := range shells {
			if strings.TrimPrefix(program, "-") == string(s) {
				shells = []state.Shell{s}
				break
			}
		}
		for _, s := range shells {
			hint += ".\n" + string(s) + ":\n" + state.Integration(s)
		}
	}
	return &hint
}
