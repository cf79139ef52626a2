"""Forms of a few words on where a proposal stands, a goal, the most or the least of a size, a link, a cost."""

from asap.chat.answers.form import Form
from asap.chat.answers.other_runs.cheaper import asks_cheaper, cheaper
from asap.chat.answers.other_runs.extremes import least_batch, least_batch_wanted, most, most_wanted
from asap.chat.answers.other_runs.fewest_chips import asks_how_many_chips, fewest_chips
from asap.chat.answers.other_runs.without_it import asks_without_it, without_it
from asap.chat.answers.proposals.fitting import fitting_within, limits_of_fit
from asap.chat.answers.proposals.goal_with_change import changes_towards_goal, goal_with_change
from asap.chat.answers.proposals.order.criteria import goes_on_ranking, rank_by
from asap.chat.answers.proposals.order.order_since import used_already, wants_it_used
from asap.chat.answers.proposals.order.reordered import asks_reordering, reordered
from asap.chat.answers.proposals.order.standing import asks_standing, standing
from asap.chat.answers.single_plans.memory.memory import memory
from asap.chat.answers.single_plans.memory.why_part import asks_how_much, asks_why_part, why_part
from asap.chat.answers.single_plans.network_use import asks_network_use, network_use
from asap.chat.answers.single_plans.part_share import asks_part_share, part_share
from asap.chat.answers.single_plans.quoted_step import of_quoted_step, quotes_step
from asap.chat.answers.this_run.opaque_named import names_opaque, opaque_named
from asap.chat.answers.this_run.record.axis_in_use import axis_in_use, says_axis_in_use
from asap.chat.answers.this_run.record.state_bytes import asks_state_bytes, state_bytes
from asap.chat.understanding.topics.topics import Topic

TERSE_FORMS: tuple[Form, ...] = (
    Form(asks_how_many_chips, lambda c, a, q: fewest_chips(c, a, q.text), Topic.LARGEST),
    Form(wants_it_used, used_already, Topic.PROPOSALS),
    Form(lambda c, q: bool(limits_of_fit(c, q)), fitting_within, Topic.FITTING),
    Form(lambda c, q: asks_without_it(q), without_it, Topic.COMPARE),
    Form(lambda c, q: says_axis_in_use(q), axis_in_use, Topic.RUN),
    Form(lambda c, q: asks_how_much(q), memory, Topic.MEMORY),
    Form(lambda c, q: asks_why_part(q), why_part, Topic.MEMORY),
    Form(lambda c, q: asks_state_bytes(q), state_bytes, Topic.MEMORY),
    Form(lambda c, q: most_wanted(q) is not None, most, Topic.LARGEST),
    Form(lambda c, q: least_batch_wanted(q), least_batch, Topic.LARGEST),
    Form(lambda c, q: changes_towards_goal(q), goal_with_change, Topic.WHAT_IF),
    Form(lambda c, q: asks_cheaper(q), cheaper, Topic.THROUGHPUT),
    Form(lambda c, q: names_opaque(q), opaque_named, Topic.OPERATIONS),
    Form(lambda c, q: goes_on_ranking(q), rank_by, Topic.RANK_BY),
    Form(lambda c, q: asks_reordering(q), reordered, Topic.PROPOSALS),
    Form(quotes_step, of_quoted_step, Topic.THROUGHPUT),
    Form(asks_part_share, part_share, Topic.COLLECTIVES),
    Form(asks_standing, standing, Topic.COMPARE),
    Form(lambda c, q: asks_network_use(q), network_use, Topic.SHARDING),
)
