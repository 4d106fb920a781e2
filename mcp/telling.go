package mcp

import "strings"

// Variables that tell of nothing but their object. tmux takes any other name for
// an option or a variable of the environment, too (format.c format_find).
var (
	serverVariables = words(`host host_short pid socket_path start_time uid user version`)
	paneVariables   = words(`
		alternate_on alternate_saved_x alternate_saved_y bracket_paste_flag
		copy_cursor_hyperlink copy_cursor_line copy_cursor_word copy_cursor_x copy_cursor_y copy_position
		cursor_blinking cursor_character cursor_colour cursor_flag cursor_shape cursor_very_visible cursor_x cursor_y
		history_all_bytes history_bytes history_limit history_size insert_flag keypad_cursor_flag keypad_flag
		last_window_index mouse_all_flag mouse_any_flag mouse_button_flag mouse_sgr_flag mouse_standard_flag mouse_utf8_flag
		origin_flag
		pane_active pane_at_bottom pane_at_left pane_at_right pane_at_top pane_bg pane_bottom pane_current_command
		pane_current_path pane_dead pane_dead_signal pane_dead_status pane_dead_time pane_fg pane_format pane_height pane_id
		pane_in_mode pane_index pane_input_off pane_key_mode pane_last pane_left pane_marked pane_mode pane_path pane_pb_progress
		pane_pb_state pane_pid pane_pipe pane_pipe_pid pane_right pane_search_string pane_start_command pane_start_path
		pane_synchronized pane_tabs pane_title pane_top pane_tty pane_unseen_changes pane_width pane_x pane_y pane_z
		rectangle_toggle scroll_position scroll_region_lower scroll_region_upper search_count search_count_partial search_match
		search_present search_timed_out selection_active selection_end_x selection_end_y selection_mode selection_present
		selection_start_x selection_start_y
		session_active session_activity session_activity_flag session_alert session_alerts session_attached session_bell_flag
		session_created session_format session_id session_last_attached session_many_attached session_marked session_name
		session_path session_silence_flag session_stack session_windows
		synchronized_output_flag
		window_active window_activity window_activity_flag window_bell_flag window_bigger window_cell_height window_cell_width
		window_end_flag window_flags window_format window_height window_id window_index window_last_flag window_layout
		window_marked_flag window_name window_offset_x window_offset_y window_panes window_raw_flags window_silence_flag
		window_stack_index window_start_flag window_visible_layout window_width window_zoomed_flag wrap_flag`)
)

func words(text string) names {
	all := names{}
	for _, w := range strings.Fields(text) {
		all[w] = true
	}
	return all
}

// mayTell refuses variables that may tell of sessions that do not exist for the
// caller.
func (c *call) mayTell(asked []string, ofPane bool) error {
	if !c.policy.restricted() {
		return nil
	}
	for _, name := range asked {
		if serverVariables[name] || ofPane && paneVariables[name] {
			continue
		}
		err := c.beyond("the variable " + quote(name)).(*problem)
		if paneVariables[name] {
			err.hint = "Give a paneId to read it of that pane."
		} else {
			err.hint = "Variables of tmux that are of one pane, its window or its session can be read, and a few of the server."
		}
		return err
	}
	return nil
}
